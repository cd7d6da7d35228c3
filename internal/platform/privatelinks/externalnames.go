package privatelinks

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
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/apply"
)

// PublishNames makes the host names of a private cluster's Routes lead to its endpoint, which is a host name or an IP address. external-dns learns them from
// Services of type ExternalName that carry label with the value "true". Services with that label that are no longer wanted are deleted.
func PublishNames(ctx context.Context, c client.Client, applier *apply.Applier, hcp *hyperv1.HostedControlPlane, label, endpoint string) error {
	want := externalNames(hcp)
	list := &corev1.ServiceList{}
	if err := c.List(ctx, list, client.InNamespace(hcp.Namespace), client.MatchingLabels{label: "true"}); err != nil {
		return fmt.Errorf("listing the Services for external-dns in %s: %w", hcp.Namespace, err)
	}
	var errs []error
	for i := range list.Items {
		if _, stays := want[list.Items[i].Name]; !stays {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, &list.Items[i])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		errs = append(errs, applier.Apply(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: hcp.Namespace, Name: name, Labels: map[string]string{label: "true"}, Annotations: map[string]string{hyperv1.ExternalDNSHostnameAnnotation: want[name]},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: hcp.Name, UID: hcp.UID}},
			},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: endpoint},
		}))
	}
	return errors.Join(errs...)
}

// externalNames maps names of Services to the host names of the Routes that they publish. It is empty for clusters that the internet reaches.
func externalNames(hcp *hyperv1.HostedControlPlane) map[string]string {
	list := map[string]string{}
	if payload.Public(hcp) {
		return list
	}
	for service, name := range map[hyperv1.ServiceType]string{hyperv1.APIServer: "kube-apiserver-private-external", hyperv1.OAuthServer: "oauth-private-external"} {
		if s := endpoints.StrategyFor(hcp, service); s != nil && s.Type == hyperv1.Route && s.Route != nil && s.Route.Hostname != "" {
			list[name] = string(s.Route.Hostname)
		}
	}
	return list
}
