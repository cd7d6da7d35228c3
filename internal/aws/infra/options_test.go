package infra

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestPlanSubnets(t *testing.T) {
	t.Run("When zones are given it should number their subnets by their order", func(t *testing.T) {
		g := NewWithT(t)
		got, err := planSubnets("10.7.0.0/16", []string{"b", "a"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal([]subnets{
			{zone: "b", public: "10.7.0.0/20", private: "10.7.128.0/20"},
			{zone: "a", public: "10.7.16.0/20", private: "10.7.144.0/20"},
		}))
	})
	for name, cidr := range map[string]string{
		"a mask of 15": "10.0.0.0/15", "a mask of 17": "10.0.0.0/17", "IPv6": "fd00::/16", "bits below the mask": "10.0.1.0/16", "nothing": "",
	} {
		t.Run("When the range has "+name+" it should be refused", func(t *testing.T) {
			_, err := planSubnets(cidr, []string{"a"})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--vpc-cidr")))
		})
	}
	t.Run("When there are up to eight zones no ranges should overlap, and nine should be refused", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := NewWithT(t)
			n := rapid.IntRange(1, 9).Draw(t, "zones")
			vpc := netip.PrefixFrom(netip.AddrFrom4([4]byte{rapid.Byte().Draw(t, "a"), rapid.Byte().Draw(t, "b"), 0, 0}), 16)
			var zones []string
			for i := range n {
				zones = append(zones, fmt.Sprint("z", i))
			}
			plan, err := planSubnets(vpc.String(), zones)
			if n > maxZones {
				g.Expect(err).To(HaveOccurred())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var all []netip.Prefix
			for _, s := range plan {
				for _, cidr := range []string{s.public, s.private} {
					p := netip.MustParsePrefix(cidr)
					g.Expect(vpc.Contains(p.Addr())).To(BeTrue())
					for _, other := range all {
						g.Expect(other.Overlaps(p)).To(BeFalse())
					}
					all = append(all, p)
				}
			}
		})
	})
}

func TestValidate(t *testing.T) {
	good := Options{InfraID: "demo-1", Name: "demo", BaseDomain: "example.com", Region: "us-east-1", VPCCIDR: "10.0.0.0/16"}
	for name, tc := range map[string]struct {
		change func(*Options)
		err    string
	}{
		"When all is well it should agree":                        {change: func(*Options) {}},
		"When the identifier has upper case it should refuse":     {change: func(o *Options) { o.InfraID = "Demo" }, err: "--infra-id"},
		"When the base domain is one label it should refuse":      {change: func(o *Options) { o.BaseDomain = "example" }, err: "--base-domain"},
		"When a zone is there twice it should refuse":             {change: func(o *Options) { o.Zones = []string{"a", "a"} }, err: "--zones"},
		"When a proxy's service has no proxy it should refuse":    {change: func(o *Options) { o.ProxyVPCEndpointServiceName = "x" }, err: "--enable-proxy"},
		"When there is a proxy for public nodes it should refuse": {change: func(o *Options) { o.EnableProxy, o.PublicOnly = true, true }, err: "--public-only"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			tc.change(&o)
			if tc.err == "" {
				NewWithT(t).Expect(o.Validate()).To(Succeed())
			} else {
				NewWithT(t).Expect(o.Validate()).To(MatchError(ContainSubstring(tc.err)))
			}
		})
	}
}

func TestOutput(t *testing.T) {
	t.Run("When it is written it should have the keys that other tools read", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := json.MarshalIndent(Output{Zones: []Zone{{Name: "a", SubnetID: "s"}}}, "", "  ")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal(`{
  "region": "",
  "zone": "",
  "infraID": "",
  "machineCIDR": "",
  "vpcID": "",
  "zones": [
    {
      "name": "a",
      "subnetID": "s"
    }
  ],
  "Name": "",
  "baseDomain": "",
  "baseDomainPrefix": "",
  "publicZoneID": "",
  "privateZoneID": "",
  "localZoneID": "",
  "proxyAddr": "",
  "secureProxyAddr": "",
  "proxyPrivateSSHKey": "",
  "publicOnly": false,
  "proxyCA": "",
  "vpcCreatorAccountID": "",
  "clusterAccountID": ""
}`))
	})
}

func TestClusterDomain(t *testing.T) {
	for prefix, want := range map[string]string{"": "demo.example.com", "none": "example.com", "p": "p.example.com"} {
		t.Run("When the prefix is "+prefix+" it should be "+want, func(t *testing.T) {
			NewWithT(t).Expect(ClusterDomain("demo", prefix, "example.com")).To(Equal(want))
		})
	}
}
