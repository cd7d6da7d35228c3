package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// marketplace is a catalog that releases have no more.
const marketplace = "redhat-marketplace-catalog"

// leftovers are what older operators made for a control plane of an OpenShift payload, and nothing asks for any more.
func leftovers(namespace string, routes bool) []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	list := []client.Object{
		&appsv1.Deployment{ObjectMeta: named("konnectivity-server")},
		&appsv1.Deployment{ObjectMeta: named(marketplace)},
		&corev1.Service{ObjectMeta: named(marketplace)},
		&hyperv1.ControlPlaneComponent{ObjectMeta: named(marketplace)},
		&corev1.Service{ObjectMeta: named("ovnkube-master-external")},
		&corev1.Service{ObjectMeta: named("ovnkube-master-internal")},
	}
	if routes {
		list = append(list, routeNamed(namespace, "ovnkube-sbdb"))
	}
	return list
}

// clearLeftovers deletes them. A Deployment of the PKI operator that selects its pods in the old way can't be changed, and is made anew.
func (r *Reconciler) clearLeftovers(ctx context.Context, obs *Observed) error {
	if obs.Flavour != openShift {
		return nil
	}
	var errs []error
	for _, obj := range leftovers(obs.HCP.Namespace, obs.Routes) {
		errs = append(errs, r.applier().Delete(ctx, obj))
	}
	operator := &appsv1.Deployment{}
	found, err := r.get(ctx, obs.HCP.Namespace, names.PKIOperator, operator)
	if errs = append(errs, err); found && operator.Spec.Selector != nil && operator.Spec.Selector.MatchLabels["name"] != "" {
		errs = append(errs, r.applier().Delete(ctx, operator))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clearing away what older operators left: %w", err)
	}
	return nil
}
