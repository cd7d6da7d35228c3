package configoperator

import (
	"context"
	"errors"

	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
)

// apply applies all objects and returns the failures. When the hosted API gives no answer at all the rest isn't tried.
func (r *Reconciler) apply(ctx context.Context, objects []client.Object) []Failure {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	applier := apply.New(r.Hosted, names.ConfigOperator)
	var failures []Failure
	for _, obj := range objects {
		gvk, err := apiutil.GVKForObject(obj, r.Hosted.Scheme())
		if err != nil {
			panic(err) // a resource of ours whose type the scheme lacks
		}
		if err := applyOne(ctx, applier, obj); err != nil {
			failures = append(failures, Failure{Object: gvk.Kind + " " + obj.GetName(), Err: err})
			if !errors.As(err, new(apierrors.APIStatus)) {
				break
			}
			continue
		}
		if r.Watch != nil {
			r.Watch(gvk)
		}
	}
	return failures
}

func applyOne(ctx context.Context, applier *apply.Applier, obj client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	err := applier.Apply(ctx, obj)
	if apierrors.IsInvalid(err) && replaceable(obj) {
		// A field that can't be changed (the role of a binding, the address family of a slice) differs: somebody made the object
		// before us, or the cluster's addresses changed. The object has no other state, so it is made anew.
		if err := applier.Delete(ctx, obj); err != nil {
			return err
		}
		err = applier.Apply(ctx, obj)
	}
	return err
}

func replaceable(obj client.Object) bool {
	switch obj.(type) {
	case *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding, *discoveryv1.EndpointSlice:
		return true
	default:
		return false
	}
}
