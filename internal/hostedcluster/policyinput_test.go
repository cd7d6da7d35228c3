package hostedcluster

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/state"
)

func TestRegistriesByAddress(t *testing.T) {
	obs := seen(func(o *state.Observed) {
		o.HC.Spec.Release.Image = "10.244.0.1:5000/release:1"
		o.HC.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "quay.io/x", Mirrors: []string{"[fd00::1]:443/x", "mirror.example.com:5000/x", "10.244.0.1:5000/y"}}}
		o.Pools = []hyperv1.NodePool{{Spec: hyperv1.NodePoolSpec{Release: hyperv1.Release{Image: "10.0.0.1/release"}}}}
	})
	NewWithT(t).Expect(registriesByAddress(obs)).To(Equal([]netip.AddrPort{netip.MustParseAddrPort("10.244.0.1:5000"), netip.MustParseAddrPort("[fd00::1]:443")}))
}

func TestManagementNetworks(t *testing.T) {
	g := NewWithT(t)
	scheme, err := NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{PodCIDR: "10.244.0.0/24", PodCIDRs: []string{"10.244.0.0/24", "fd00::/64"}}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}}, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](16443)}}},
	).Build()
	closed, err := management.ParseNetworks(" 198.51.100.7/24, ")
	g.Expect(err).NotTo(HaveOccurred())
	m := &management.Cluster{Reader: c, Mapper: c.RESTMapper(), Networks: closed, Clock: clock.RealClock{}}
	got, err := m.Network(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.APIPorts).To(Equal([]int32{16443}))
	var networks []string
	for _, p := range got.Networks {
		networks = append(networks, p.String())
	}
	g.Expect(networks).To(Equal([]string{"198.51.100.0/24", "10.244.0.0/24", "10.244.0.0/24", "fd00::/64", "192.0.2.1/32"}))
	_, err = management.ParseNetworks("10.0.0.0")
	g.Expect(err).To(MatchError(`HCP_EGRESS_BLOCK_CIDRS: "10.0.0.0" is no network: write it as 192.0.2.0/24`))
}

func TestVirtualMachinesInTheNamespace(t *testing.T) {
	on := func(k *hyperv1.KubevirtPlatformSpec) string {
		obs := seen(func(o *state.Observed) {
			o.HC.Spec.InfraID = "demo-1"
			o.HC.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: k}
		})
		return policyInput(obs).VirtualMachines
	}
	t.Run("When virtual machines are in the management cluster there should be a policy for them", func(t *testing.T) {
		NewWithT(t).Expect(on(nil)).To(Equal("demo-1"))
		NewWithT(t).Expect(on(&hyperv1.KubevirtPlatformSpec{})).To(Equal("demo-1"))
	})
	t.Run("When they are in another cluster there should be none here", func(t *testing.T) {
		NewWithT(t).Expect(on(&hyperv1.KubevirtPlatformSpec{Credentials: &hyperv1.KubevirtPlatformCredentials{}})).To(BeEmpty())
	})
	t.Run("When the platform is another there should be none", func(t *testing.T) {
		NewWithT(t).Expect(policyInput(seen()).VirtualMachines).To(BeEmpty())
	})
}
