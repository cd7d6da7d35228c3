package apiproxy

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/contract/nodeconfig"
)

func TestMachineConfig(t *testing.T) {
	direct := Input{Address: netip.MustParseAddr("172.20.0.1"), Port: 6443, Host: "api.example.com", HostPort: 443, Image: "quay.io/haproxy@sha256:1"}
	proxied := direct
	proxied.Proxy, proxied.ProxyImage = "http://proxy:3128", "quay.io/hypershift@sha256:2"
	for name, in := range map[string]Input{"direct": direct, "proxied": proxied} {
		t.Run("When nodes reach the API "+name+" it should always be the same, for another would replace machines", func(t *testing.T) {
			g := NewWithT(t)
			got, err := MachineConfig(in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(nodeconfig.Validate(nodeconfig.Target{}, nodeconfig.Source{Data: got})).To(Succeed())
			golden := filepath.Join("testdata", name+".yaml")
			if os.Getenv("UPDATE") != "" {
				g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
				g.Expect(os.WriteFile(golden, []byte(got), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(golden)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(string(want)))
		})
	}
	for name, tc := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"When the API has no address yet it should wait":              {func(in *Input) { in.Host = "" }, "no address of its API yet"},
		"When the release has no image it should name the container":  {func(in *Input) { in.Image = "" }, "container haproxy"},
		"When a host would break out of the file it should refuse it": {func(in *Input) { in.Host = "x\n  server y" }, "is no name of a host"},
	} {
		t.Run(name, func(t *testing.T) {
			in := direct
			tc.change(&in)
			_, err := MachineConfig(in)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
