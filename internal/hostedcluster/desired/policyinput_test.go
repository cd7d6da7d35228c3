package desired

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestRegistriesByAddress(t *testing.T) {
	obs := statetest.Seen(func(o *state.Observed) {
		o.HC.Spec.Release.Image = "10.244.0.1:5000/release:1"
		o.HC.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "quay.io/x", Mirrors: []string{"[fd00::1]:443/x", "mirror.example.com:5000/x", "10.244.0.1:5000/y"}}}
		o.Pools = []hyperv1.NodePool{{Spec: hyperv1.NodePoolSpec{Release: hyperv1.Release{Image: "10.0.0.1/release"}}}}
	})
	NewWithT(t).Expect(registriesByAddress(obs)).To(Equal([]netip.AddrPort{netip.MustParseAddrPort("10.244.0.1:5000"), netip.MustParseAddrPort("[fd00::1]:443")}))
}

func TestVirtualMachinesInTheNamespace(t *testing.T) {
	on := func(k *hyperv1.KubevirtPlatformSpec) string {
		obs := statetest.Seen(func(o *state.Observed) {
			o.HC.Spec.InfraID = "demo-1"
			o.HC.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: k}
		})
		return PolicyInput(obs).VirtualMachines
	}
	t.Run("When virtual machines are in the management cluster there should be a policy for them", func(t *testing.T) {
		NewWithT(t).Expect(on(nil)).To(Equal("demo-1"))
		NewWithT(t).Expect(on(&hyperv1.KubevirtPlatformSpec{})).To(Equal("demo-1"))
	})
	t.Run("When they are in another cluster there should be none here", func(t *testing.T) {
		NewWithT(t).Expect(on(&hyperv1.KubevirtPlatformSpec{Credentials: &hyperv1.KubevirtPlatformCredentials{}})).To(BeEmpty())
	})
	t.Run("When the platform is another there should be none", func(t *testing.T) {
		NewWithT(t).Expect(PolicyInput(statetest.Seen()).VirtualMachines).To(BeEmpty())
	})
}

func TestAutoNodeInPolicies(t *testing.T) {
	asked := func(o *state.Observed) {
		o.HC.Spec.AutoNode = &hyperv1.AutoNode{Provisioner: hyperv1.ProvisionerConfig{Name: hyperv1.ProvisionerKarpenter, Karpenter: &hyperv1.KarpenterConfig{Platform: hyperv1.KarpenterLocalPlatform}}}
	}
	for name, tc := range map[string]struct {
		change []func(*state.Observed)
		want   bool
	}{
		"When nobody asks for Karpenter there should be no policy for it": {},
		"When it is asked for it should reach what it needs":              {change: []func(*state.Observed){asked}, want: true},
		"When it still removes its machines it should reach them": {want: true, change: []func(*state.Observed){func(o *state.Observed) {
			o.HCP = HostedControlPlane(o)
			o.HCP.Status.Conditions = append(o.HCP.Status.Conditions, conditions.False(hyperv1.AutoNodeEnabled, hyperv1.AutoNodeProgressingReason, ""))
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			obs := statetest.Seen(append(tc.change, func(o *state.Observed) { o.Target.Kubernetes = true })...)
			NewWithT(t).Expect(PolicyInput(obs).AutoNode).To(Equal(tc.want))
		})
	}
}
