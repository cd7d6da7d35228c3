package payload_test

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

func TestNetworks(t *testing.T) {
	pod := func(cidr string, prefix int64) any { return map[string]any{"cidr": cidr, "hostPrefix": prefix} }
	for name, tc := range map[string]struct {
		pods           []hyperv1.ClusterNetworkEntry
		services       []hyperv1.ServiceNetworkEntry
		want, wantServ []any
		err            string
	}{
		"When no prefix of nodes is given it should be that of the family": {
			pods:     []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}, {CIDR: "fd01::/48"}},
			services: []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}, {CIDR: "fd02::/112"}},
			want:     []any{pod("10.132.0.0/14", 23), pod("fd01::/48", 64)}, wantServ: []any{"172.31.0.0/16", "fd02::/112"},
		},
		"When a prefix of nodes is given it should be taken": {pods: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14", HostPrefix: 24}}, want: []any{pod("10.132.0.0/14", 24)}, wantServ: []any{}},
		"When there are no networks it should list none":     {want: []any{}, wantServ: []any{}},
		"When a network is none it should name the field":    {pods: []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}, {CIDR: "x"}}, err: `spec.networking.clusterNetwork[1].cidr "x" is not a network: write one such as 10.132.0.0/14`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Networking.ClusterNetwork, hcp.Spec.Networking.ServiceNetwork = tc.pods, tc.services
			pods, services, err := payload.Networks(hcp)
			if tc.err != "" {
				g.Expect(err).To(MatchError(tc.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(Equal(tc.want))
			g.Expect(services).To(Equal(tc.wantServ))
		})
	}
}
