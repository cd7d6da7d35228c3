package manager

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/packages/control/program"
)

func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		env     map[string]string
		check   func(g Gomega, o Options)
		problem string
	}{
		"When nothing is given it should have the defaults that users know": {check: func(g Gomega, o Options) {
			g.Expect(o.MetricsAddr).To(Equal(":8080"))
			g.Expect(o.HealthAddr).To(Equal(":8081"))
			g.Expect(o.PprofAddr).To(BeEmpty())
			g.Expect(o.LeaderElection).To(BeTrue())
			g.Expect(o.ObjectTemplateRetryInterval).To(Equal(30 * time.Second))
			g.Expect(o.ObjectTemplateOptionalRetryInterval).To(Equal(time.Minute))
			g.Expect(o.ForceAdoption).To(BeFalse())
		}},
		"When flags have one dash it should understand them": {
			args: []string{"-namespace", "ns", "-enable-leader-election=false", "-package-hash-modifier=3", "--metrics-addr", "-"},
			check: func(g Gomega, o Options) {
				g.Expect(o.Namespace).To(Equal("ns"))
				g.Expect(o.LeaderElection).To(BeFalse())
				g.Expect(o.PackageHashModifier).To(Equal(int32(3)))
				g.Expect(o.MetricsAddr).To(Equal("-"))
			},
		},
		"When the environment says more it should count": {
			env: map[string]string{
				"PKO_NAMESPACE": "from-env", "PKO_PACKAGE_HASH_MODIFIER": "7", "PKO_IMAGE_PREFIX_OVERRIDES": "a=b", "PKO_FORCE_ADOPTION": "1",
				"PKO_SUB_COMPONENT_TOLERATIONS": `[{"key":"infra","operator":"Exists"}]`,
			},
			check: func(g Gomega, o Options) {
				g.Expect(o.Namespace).To(Equal("from-env"))
				g.Expect(o.PackageHashModifier).To(Equal(int32(7)))
				g.Expect(o.ImagePrefixOverrides).To(Equal("a=b"))
				g.Expect(o.ForceAdoption).To(BeTrue())
				g.Expect(o.SubComponentTolerations).To(Equal([]corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}}))
			},
		},
		"When networks are refused it should know them": {
			env: map[string]string{"PKO_REFUSED_REGISTRY_NETWORKS": "10.96.0.0/12,fd00::1"},
			check: func(g Gomega, o Options) {
				g.Expect(o.RefusedNetworks.Has(netip.MustParseAddr("10.97.0.1"))).To(BeTrue())
				g.Expect(o.RefusedNetworks.Has(netip.MustParseAddr("10.1.0.1"))).To(BeFalse())
			},
		},
		"When what is refused is no network it should say so": {
			args: []string{"--refused-registry-networks=example.com"}, problem: `--refused-registry-networks: "example.com" is no network: write address/bits, such as 10.96.0.0/12, separated by commas`,
		},
		"When both are given flags should win": {
			args: []string{"--namespace=flag"}, env: map[string]string{"PKO_NAMESPACE": "from-env"},
			check: func(g Gomega, o Options) { g.Expect(o.Namespace).To(Equal("flag")) },
		},
		"When affinity is a flag it should be parsed, too": {
			args:  []string{`--sub-component-affinity={"podAntiAffinity":{}}`},
			check: func(g Gomega, o Options) { g.Expect(o.SubComponentAffinity.PodAntiAffinity).NotTo(BeNil()) },
		},
		"When the modifier is no number it should say which variable": {
			env: map[string]string{"PKO_PACKAGE_HASH_MODIFIER": "many"}, problem: "unable to parse environment variable 'PKO_PACKAGE_HASH_MODIFIER' as integer",
		},
		"When it is to install itself it should know where to":                {args: []string{"-self-bootstrap=image", "-enable-leader-election=false"}, problem: "--namespace: required with --self-bootstrap"},
		"When tolerations are no JSON it should name the flag":                {args: []string{"--sub-component-tolerations=x"}, problem: "--sub-component-tolerations: "},
		"When a lease is wanted outside a cluster it should need a namespace": {args: []string{"--kubeconfig=f"}, problem: "--namespace: required outside a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			o := Options{Options: program.Options{LeaderElection: true}}
			cmd := Command(nil)
			cmd.ResetFlags()
			o.addFlags(cmd.Flags())
			g.Expect(cmd.Flags().Parse(program.DoubleDashes(cmd.Flags(), tc.args))).To(Succeed())
			err := o.complete(cmd.Flags(), func(name string) string { return tc.env[name] })
			if tc.problem != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.problem)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			tc.check(g, o)
		})
	}
}
