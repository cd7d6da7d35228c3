package hypershift

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/apply"
)

// Reconciler keeps a connector beside every hosted control plane. It is the only writer of what a connector consists of.
type Reconciler struct {
	// Client reads HostedClusters, Namespaces and Packages from a cache, and writes Packages.
	Client client.Client
	// Parts reads what belongs to connectors from a cache that holds nothing else, and writes it.
	Parts    client.Client
	Settings settings
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing the connector of %s: %w", req, err)
	}
	p, err := planFor(in, r.Settings)
	if err != nil {
		return ctrl.Result{}, err
	}
	applier := apply.New(r.Parts, v1alpha1.FieldOwner)
	var errs []error
	for _, obj := range p.Delete {
		// With the UID that was seen: a successor of the same name is somebody else's.
		err := r.Client.Delete(ctx, obj, client.Preconditions{UID: ptrTo(obj.GetUID())})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
		}
	}
	errs = append(errs, applier.All(ctx, p.Apply...))
	if p.Package != nil {
		errs = append(errs, r.writePackage(ctx, in.Package, p.Package))
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, fmt.Errorf("keeping the connector of %s: %w", req, err)
	}
	return ctrl.Result{}, nil
}

func ptrTo[T any](v T) *T { return &v }
