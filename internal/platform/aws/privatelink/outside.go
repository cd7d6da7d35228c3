package privatelink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// outsideLabel is on the Services by which external-dns learns the names of a private control plane.
const outsideLabel = "hypershift.openshift.io/external-private-service"

// publish has the names that a private cluster's Routes have lead to its endpoint, for those who use the DNS of external-dns. Others are removed.
func (r *Endpoints) publish(ctx context.Context, hcp *hyperv1.HostedControlPlane, host string) error {
	want := outside(hcp)
	list := &corev1.ServiceList{}
	if err := r.Client.List(ctx, list, client.InNamespace(hcp.Namespace), client.MatchingLabels{outsideLabel: "true"}); err != nil {
		return fmt.Errorf("listing the Services for external-dns in %s: %w", hcp.Namespace, err)
	}
	var errs []error
	for i := range list.Items {
		if _, stays := want[list.Items[i].Name]; !stays {
			errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, &list.Items[i])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		errs = append(errs, r.Applier.Apply(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: hcp.Namespace, Name: name, Labels: map[string]string{outsideLabel: "true"}, Annotations: map[string]string{hyperv1.ExternalDNSHostnameAnnotation: want[name]},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: hcp.Name, UID: hcp.UID}},
			},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
		}))
	}
	return errors.Join(errs...)
}
