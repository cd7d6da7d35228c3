package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	// tenantService is the label by which the cloud-controller-manager of KubeVirt says of which Service of the hosted cluster one beside the virtual
	// machines is the mirror.
	tenantService = "cluster.x-k8s.io/tenant-service-name"
	// maxMirrors bounds the load balancers of a hosted cluster that are led to its machines, and maxPorts the ports of one, which is what an EndpointSlice holds.
	maxMirrors, maxPorts = 200, 100
)

// ObserveMirrors reads the Services beside virtual machines that stand for load balancers of the hosted cluster, by name. infra is the cluster that runs
// them. There are none on other platforms.
func ObserveMirrors(ctx context.Context, infra client.Reader, hcp *hyperv1.HostedControlPlane) ([]corev1.Service, error) {
	if hcp.Spec.Platform.Type != hyperv1.KubevirtPlatform || hcp.Spec.InfraID == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list := &corev1.ServiceList{}
	err := infra.List(ctx, list, client.InNamespace(infraNamespace(hcp)), client.MatchingLabels{hyperv1.InfraIDLabel: hcp.Spec.InfraID}, client.HasLabels{tenantService}, client.Limit(maxMirrors))
	if err != nil {
		return nil, fmt.Errorf("listing load balancers beside the virtual machines, in namespace %s: %w", infraNamespace(hcp), err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Service) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// balancers lead load balancers of the hosted cluster to its machines: the cloud-controller-manager makes a Service without a selector for each, beside the
// virtual machines, whose ports go to node ports. As for applications, addresses are those that the machines' provider tells.
func balancers(in Input) ([]Action, error) {
	if in.HCP.Spec.Platform.Type != hyperv1.KubevirtPlatform {
		return nil, nil
	}
	var actions []Action
	for i := range in.Control.Mirrors {
		service := &in.Control.Mirrors[i]
		ports := mirrorPorts(service)
		if len(service.Spec.Selector) > 0 || len(ports) == 0 || !service.DeletionTimestamp.IsZero() {
			continue // somebody else leads it
		}
		for _, family := range []string{"IPv4", "IPv6"} {
			a := slice(in, service.Namespace, service.Name, family, ports)
			if a.Do != Delete { // it goes with its Service
				a.Object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}})
			}
			a.Management, a.Infra = true, true
			actions = append(actions, a)
		}
	}
	return actions, in.Control.MirrorsErr
}

// mirrorPorts are the ports of machines that a load balancer leads to, as EndpointSlices name them.
func mirrorPorts(service *corev1.Service) (ports []any) {
	for _, p := range service.Spec.Ports[:min(len(service.Spec.Ports), maxPorts)] {
		// The mirror has node ports, too, but those are of the cluster that runs the virtual machines.
		if port := p.TargetPort.IntVal; p.TargetPort.Type == intstr.Int && port > 0 && port <= 65535 {
			ports = append(ports, map[string]any{"name": p.Name, "protocol": string(cmp.Or(p.Protocol, corev1.ProtocolTCP)), "port": int64(port)})
		}
	}
	return ports
}
