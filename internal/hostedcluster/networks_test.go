package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hcp.internal/platform/internal/hostedcluster/management"
)

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
