package kit

import (
	"fmt"
	"net/url"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/component"
)

// ManagedEtcd says whether etcd is a part of the control plane.
func ManagedEtcd(hcp *hyperv1.HostedControlPlane) bool {
	return hcp.Spec.Etcd.ManagementType != hyperv1.Unmanaged
}

// EtcdURL is where etcd answers clients.
func EtcdURL(hcp *hyperv1.HostedControlPlane) string {
	if u := hcp.Spec.Etcd.Unmanaged; !ManagedEtcd(hcp) && u != nil {
		return u.Endpoint
	}
	return "https://etcd-client:2379"
}

// EtcdHost is the host of EtcdURL.
func EtcdHost(hcp *hyperv1.HostedControlPlane) (string, error) {
	u, err := url.Parse(EtcdURL(hcp))
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("spec.etcd.unmanaged.endpoint %q has no host: it must look like https://etcd.example.com:2379", EtcdURL(hcp))
	}
	return u.Hostname(), nil
}

// AuthProxyExceptions are the hosts that API servers reach without the tunnel, as NO_PROXY wants them.
func AuthProxyExceptions(hcp *hyperv1.HostedControlPlane) (string, error) {
	etcd, err := EtcdHost(hcp)
	return "kube-apiserver," + etcd + ",audit-webhook", err
}

// BaseDomain is the DNS domain of the hosted cluster.
func BaseDomain(hcp *hyperv1.HostedControlPlane) string { return payload.BaseDomain(hcp) }

// IngressDomain is the DNS domain of Routes in the hosted cluster.
func IngressDomain(hcp *hyperv1.HostedControlPlane) string { return payload.IngressDomain(hcp) }

// Private says whether nodes reach the control plane by a way that isn't the internet.
func Private(hcp *hyperv1.HostedControlPlane) bool { return payload.Private(hcp) }

// Swift says whether router pods have a network interface in the virtual network of the hosted cluster, on Azure.
func Swift(hcp *hyperv1.HostedControlPlane) bool { return payload.Swift(hcp) }

// Published is where the API of the hosted cluster is reached from outside: what the HostedControlPlane says of it, or else what is known of the
// endpoints.
func Published(ctx component.WorkloadContext) (host string, port int32) {
	if e := ctx.HCP.Status.ControlPlaneEndpoint; e.Host != "" {
		return e.Host, e.Port
	}
	return ctx.Infra.APIHost, ctx.Infra.APIPort
}

// LocalAPIHost is the name of the API server in the private zone of the hosted cluster's network.
func LocalAPIHost(hcp *hyperv1.HostedControlPlane) string { return payload.LocalAPIHost(hcp) }
