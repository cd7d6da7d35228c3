package kubecontrollermanager

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestNodeCIDRs(t *testing.T) {
	control := func(networks ...hyperv1.ClusterNetworkEntry) *hyperv1.HostedControlPlane {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Networking = hyperv1.ClusterNetworking{AllocateNodeCIDRs: ptr.To(hyperv1.AllocateNodeCIDRsEnabled), ClusterNetwork: networks}
		return hcp
	}
	v4, v6 := hyperv1.ClusterNetworkEntry{CIDR: "10.132.0.0/14", HostPrefix: 23}, hyperv1.ClusterNetworkEntry{CIDR: "fd01::/48", HostPrefix: 64}
	t.Run("When there is one network it should size its parts", func(t *testing.T) {
		NewWithT(t).Expect(nodeCIDRs(control(v4))).To(Equal([]string{"--allocate-node-cidrs=true", "--node-cidr-mask-size=23"}))
	})
	t.Run("When there is one of each family it should size both, as kube-controller-manager wants it", func(t *testing.T) {
		NewWithT(t).Expect(nodeCIDRs(control(v4, v6))).To(Equal([]string{"--allocate-node-cidrs=true", "--node-cidr-mask-size-ipv4=23", "--node-cidr-mask-size-ipv6=64"}))
	})
}
