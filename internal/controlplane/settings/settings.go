// Package settings reads a HostedControlPlane as the programs of a control plane need it: as flags.
package settings

import (
	"net/netip"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// apiPort is where kube-apiserver listens in its pod when the user does not say. 443 means the default, too: a pod that does
// not run as root cannot have that port, and the Service in front of it can.
const apiPort int32 = 6443

// APIPodPort is the port of kube-apiserver in its pod.
func APIPodPort(hcp *hyperv1.HostedControlPlane) int32 {
	if s := hcp.Spec.Networking.APIServer; s != nil && s.Port != nil && *s.Port != 0 && *s.Port != 443 {
		return *s.Port
	}
	return apiPort
}

// ServiceCIDRs are the ranges of Services in the hosted cluster, ClusterCIDRs those of pods.
func ServiceCIDRs(hcp *hyperv1.HostedControlPlane) []string {
	var cidrs []string
	for _, n := range hcp.Spec.Networking.ServiceNetwork {
		cidrs = append(cidrs, string(n.CIDR))
	}
	return cidrs
}

// ClusterCIDRs are the ranges of pods in the hosted cluster.
func ClusterCIDRs(hcp *hyperv1.HostedControlPlane) []string {
	var cidrs []string
	for _, n := range hcp.Spec.Networking.ClusterNetwork {
		cidrs = append(cidrs, string(n.CIDR))
	}
	return cidrs
}

// IPv6 says whether the hosted cluster's first network is IPv6, so that servers listen on [::].
func IPv6(hcp *hyperv1.HostedControlPlane) bool {
	cidrs := ClusterCIDRs(hcp)
	if len(cidrs) == 0 {
		return false
	}
	prefix, err := netip.ParsePrefix(cidrs[0])
	return err == nil && prefix.Addr().Is6()
}

// defaultIssuer is the issuer of ServiceAccount tokens when the HostedControlPlane names none.
const defaultIssuer = "https://kubernetes.default.svc"

// Issuer is the issuer of ServiceAccount tokens.
func Issuer(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.IssuerURL != "" {
		return hcp.Spec.IssuerURL
	}
	return defaultIssuer
}

// APIServer is spec.configuration.apiServer, never nil.
func APIServer(hcp *hyperv1.HostedControlPlane) *configv1.APIServerSpec {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.APIServer == nil {
		return &configv1.APIServerSpec{}
	}
	return hcp.Spec.Configuration.APIServer
}
