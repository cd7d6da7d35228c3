package network

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRuleset(t *testing.T) {
	t.Run("When pods stay inside it should refuse what leaves the bridge and drop cluster addresses elsewhere", func(t *testing.T) {
		g := NewWithT(t)
		got := ruleset(Options{})
		g.Expect(got).To(HavePrefix("table inet hypershift_local {}\ndelete table inet hypershift_local\n"), "replaced in one transaction")
		g.Expect(got).To(ContainSubstring(`oifname != { "lo", "hcp0" } ip daddr { 10.244.0.0/16, 10.96.0.0/16, 10.97.0.0/24 } drop`))
		g.Expect(got).To(ContainSubstring(`iifname != { "lo", "hcp0" } ip daddr { 10.244.0.0/16, 10.96.0.0/16, 10.97.0.0/24 } drop`))
		g.Expect(got).To(ContainSubstring(`iifname "hcp0" oifname != "hcp0" reject`))
		g.Expect(got).NotTo(ContainSubstring("masquerade"))
	})
	t.Run("When nobody has rewritten a service's address it should refuse at once, before kube-proxy drops it", func(t *testing.T) {
		g := NewWithT(t)
		for _, hook := range []string{"forward", "output"} {
			g.Expect(ruleset(Options{})).To(ContainSubstring("hook " + hook + " priority -1; ip daddr { 10.96.0.0/16, 10.97.0.0/24 } meta l4proto tcp reject with tcp reset;"))
		}
	})
	t.Run("When pods may reach beyond it should hide them behind the machine's address", func(t *testing.T) {
		g := NewWithT(t)
		got := ruleset(Options{PodEgress: true})
		g.Expect(got).To(ContainSubstring(`ip saddr 10.244.0.0/16 oifname != { "lo", "hcp0" } masquerade`))
		g.Expect(got).NotTo(ContainSubstring(`oifname != "hcp0" reject`))
	})
}

func TestAddresses(t *testing.T) {
	t.Run("When ranges are fixed they should not overlap, and hold their addresses", func(t *testing.T) {
		g := NewWithT(t)
		ranges := []netip.Prefix{netip.MustParsePrefix(ClusterCIDR), netip.MustParsePrefix(ServiceCIDR), netip.MustParsePrefix(LoadBalancerCIDR)}
		for i, a := range ranges {
			for _, b := range ranges[i+1:] {
				g.Expect(a.Overlaps(b)).To(BeFalse())
			}
		}
		g.Expect(netip.MustParsePrefix(PodCIDR).Contains(netip.MustParseAddr(NodeIP))).To(BeTrue())
		g.Expect(ranges[0].Overlaps(netip.MustParsePrefix(PodCIDR))).To(BeTrue())
		g.Expect(ranges[1].Contains(netip.MustParseAddr(DNSServiceIP))).To(BeTrue())
	})
}
