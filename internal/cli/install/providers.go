package install

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/progress"
)

// leaveProviders takes out of crds the definitions of infrastructure providers that somebody else has installed: theirs check what ours, which are for
// clusters without a provider of its own, let pass, and may have versions that objects are stored in.
func leaveProviders(ctx context.Context, c client.Client, o Options, p *progress.Printer, crds []client.Object) ([]client.Object, error) {
	if len(crds) == 0 {
		return nil, nil
	}
	providers, err := providerCRDs(o)
	if err != nil {
		return nil, err
	}
	theirs := map[string]bool{}
	for _, crd := range providers {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err := c.Get(ctx, client.ObjectKey{Name: crd.Name}, live); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", crd.Name, err)
		}
		if !OwnsCRD(live, crd.Spec.Group) {
			theirs[crd.Name] = true
			p.Printf("left alone CustomResourceDefinition %s: someone else installed it", crd.Name)
		}
	}
	return slices.DeleteFunc(crds, func(obj client.Object) bool { return theirs[obj.GetName()] }), nil
}
