package packagecontroller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
)

// deployment is the ObjectDeployment of a Package as the cache has it, nil when there is none of its own.
func (r *Reconciler) deployment(ctx context.Context, p *v1alpha1.Package) (*v1alpha1.ObjectDeployment, error) {
	od := &v1alpha1.ObjectDeployment{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(p), od)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(od, p) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the deployment of %s: %w", client.ObjectKeyFromObject(p), err)
	}
	return od, nil
}
