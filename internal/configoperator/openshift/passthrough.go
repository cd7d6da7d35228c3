package openshift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/endpoints"
)

const (
	// routerService is the Service by which nodes offer the router of the hosted cluster.
	routerService = "router-nodeport-default"
	// passthroughPort is the name of the port of our Service.
	passthroughPort = "https-443"
	// maxMachines bounds the machines that applications are reached on: what one EndpointSlice can hold.
	maxMachines = 1000
)

var routerKey = "Service " + ingressNamespace + "/" + routerService

// passesThrough says whether the applications of a hosted cluster are reached by the router of the cluster that runs its virtual machines.
func passesThrough(hcp *hyperv1.HostedControlPlane) bool {
	k := hcp.Spec.Platform.Kubevirt
	return hcp.Spec.Platform.Type == hyperv1.KubevirtPlatform && k != nil && k.BaseDomainPassthrough != nil && *k.BaseDomainPassthrough &&
		payload.HasCapability(hcp, hyperv1.IngressCapability)
}

// infraNamespace is where virtual machines are.
func infraNamespace(hcp *hyperv1.HostedControlPlane) string {
	if k := hcp.Spec.Platform.Kubevirt; k != nil && k.Credentials != nil && k.Credentials.InfraNamespace != "" {
		return k.Credentials.InfraNamespace
	}
	return hcp.Namespace
}

// passthroughNames are those of the Service, with its EndpointSlices, and of the Route.
func passthroughNames(hcp *hyperv1.HostedControlPlane) (service, route string) {
	id := hcp.Spec.Platform.Kubevirt.GenerateID
	return "default-ingress-passthrough-service-" + id, "default-ingress-passthrough-route-" + id
}

// passthrough leads the names of applications from the router of the cluster that runs the virtual machines to the router in them:
//
//	*.apps.CLUSTER.DOMAIN ──▶ router there ──Route──▶ Service, EndpointSlices ──▶ machines, port of the hosted router's Service ──▶ router in the hosted cluster
//
// Addresses are those of machines as their provider tells them, never what the hosted cluster says of its nodes: it could name anybody's.
func passthrough(in Input) ([]Action, error) {
	if !passesThrough(in.HCP) {
		return nil, nil
	}
	port := routerPort(in.Hosted.Objects[routerKey])
	if port == 0 {
		return nil, fmt.Errorf("waiting for port https of Service %s/%s, by which nodes offer the router of the hosted cluster: its ingress operator makes it", ingressNamespace, routerService)
	}
	ns, labels := infraNamespace(in.HCP), map[string]string{hyperv1.InfraIDLabel: in.HCP.Spec.InfraID}
	name, routeName := passthroughNames(in.HCP)
	service := object(core, "Service", ns, name, map[string]any{"spec": map[string]any{
		"ports": []any{map[string]any{"name": passthroughPort, "protocol": "TCP", "port": int64(443), "targetPort": port}},
	}})
	service.SetLabels(labels)
	route := object(endpoints.RouteKind.GroupVersion().String(), endpoints.RouteKind.Kind, ns, routeName, map[string]any{"spec": map[string]any{
		"host": "https." + payload.IngressDomain(in.HCP), "wildcardPolicy": "Subdomain",
		"to":   map[string]any{"kind": "Service", "name": name},
		"port": map[string]any{"targetPort": passthroughPort}, "tls": map[string]any{"termination": "passthrough"},
	}})
	route.SetLabels(labels)
	actions := apply(service)
	for _, family := range []string{"IPv4", "IPv6"} {
		actions = append(actions, slice(in, ns, name, family, []any{map[string]any{"name": passthroughPort, "protocol": "TCP", "port": port}}))
	}
	actions = append(actions, apply(route)...)
	for i := range actions {
		actions[i].Management, actions[i].Infra = true, true
		if ns == in.HCP.Namespace && actions[i].Do != Delete {
			own(actions[i].Object, in)
		}
	}
	return actions, nil
}

// slice has the addresses of one family, or says that there is none.
func slice(in Input, namespace, service, family string, ports []any) Action {
	var list []any
	for _, m := range in.Control.Machines {
		if address := machineAddress(m, family); address != "" {
			list = append(list, map[string]any{"addresses": []any{address}, "conditions": map[string]any{"ready": true, "serving": true, "terminating": false}})
		}
	}
	name := service + map[string]string{"IPv4": "-ipv4", "IPv6": "-ipv6"}[family]
	if len(list) == 0 {
		return remove("discovery.k8s.io/v1", "EndpointSlice", namespace, name)
	}
	u := object("discovery.k8s.io/v1", "EndpointSlice", namespace, name, map[string]any{
		"addressType": family, "endpoints": list, "ports": ports,
	})
	u.SetLabels(map[string]string{
		"kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "hosted-cluster-config-operator.hypershift.openshift.io", hyperv1.InfraIDLabel: in.HCP.Spec.InfraID,
	})
	return apply(u)[0]
}

// machineAddress is the first address of a machine in its network that is of a family.
func machineAddress(m clusterv1.Machine, family string) string {
	if !m.DeletionTimestamp.IsZero() {
		return ""
	}
	for _, a := range m.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		if a.Type != clusterv1.MachineInternalIP || err != nil || ip.Zone() != "" || !ip.IsGlobalUnicast() || ip.Unmap().Is4() != (family == "IPv4") {
			continue
		}
		return ip.Unmap().String()
	}
	return ""
}

// routerPort is the port of nodes at which the hosted router takes TLS, 0 when there is none. The Service is the hosted cluster's own and may say anything.
func routerPort(service map[string]any) int64 {
	ports, _ := peek(service, "spec")["ports"].([]any)
	for _, p := range ports {
		port, _ := p.(map[string]any)
		number, _ := port["nodePort"].(int64)
		if (port["name"] == "https" || port["port"] == int64(443)) && number > 0 && number <= 65535 {
			return number
		}
	}
	return 0
}

// observeMachines reads the machines of a hosted cluster whose applications or load balancers are reached on them, by name.
func observeMachines(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) ([]clusterv1.Machine, error) {
	if hcp.Spec.Platform.Type != hyperv1.KubevirtPlatform {
		return nil, nil
	}
	machines := &clusterv1.MachineList{}
	if err := c.List(ctx, machines, client.InNamespace(hcp.Namespace), client.Limit(maxMachines)); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	slices.SortFunc(machines.Items, func(a, b clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return machines.Items, nil
}

// RemovePassthrough are the actions that remove what leads to the applications of a hosted cluster that is removed, from another cluster. In the namespace of the control
// plane it goes with that.
func RemovePassthrough(hcp *hyperv1.HostedControlPlane) []Action {
	ns := infraNamespace(hcp)
	if !passesThrough(hcp) || ns == hcp.Namespace {
		return nil
	}
	name, route := passthroughNames(hcp)
	var actions []Action
	for _, a := range []Action{
		remove(endpoints.RouteKind.GroupVersion().String(), endpoints.RouteKind.Kind, ns, route), remove(core, "Service", ns, name),
		remove("discovery.k8s.io/v1", "EndpointSlice", ns, name+"-ipv4"), remove("discovery.k8s.io/v1", "EndpointSlice", ns, name+"-ipv6"),
	} {
		a.Management, a.Infra = true, true
		actions = append(actions, a)
	}
	return actions
}

// ErrNoRoutes says that the cluster that runs the virtual machines has no Routes.
var ErrNoRoutes = errors.New("the cluster that runs the virtual machines serves no Routes: spec.platform.kubevirt.baseDomainPassthrough needs one of OpenShift")
