package policy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func pod(namespace, name, address string, labels ...string) Pod {
	p := Pod{Namespace: namespace, Name: name, Address: netip.MustParseAddr(address), Labels: map[string]string{}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		p.Labels[k] = v
	}
	return p
}

func policyOf(t testing.TB, namespace, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRules(t *testing.T) {
	etcd, kas, hostile := pod("a", "etcd", "10.244.0.2", "app=etcd"), pod("a", "kas", "10.244.0.3", "app=kas"), pod("b", "x", "10.244.0.4", "app=kas")
	etcd.Ports = []corev1.ContainerPort{{Name: "client", ContainerPort: 2379, Protocol: corev1.ProtocolTCP}}
	world := State{Pods: []Pod{etcd, kas, hostile}, Namespaces: map[string]map[string]string{"a": {"name": "a"}, "b": {"name": "b"}}}
	for name, tc := range map[string]struct {
		spec string
		into []string // lines of the chain for what goes to etcd; nil: none
		from []string // and for what it sends
	}{
		"When nothing selects the pod it should have no chain": {spec: `{podSelector: {matchLabels: {app: other}}, ingress: [{}]}`},
		"When nothing is allowed it should reject everything":  {spec: `{podSelector: {}, policyTypes: [Ingress, Egress]}`, into: []string{}, from: []string{}},
		"When pods of the namespace are allowed it should not take those of others with the same label": {
			spec: `{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: kas}}}], ports: [{port: 2379}, {port: 53, protocol: UDP}]}]}`,
			into: []string{"ip saddr { 10.244.0.3 } tcp dport { 2379 } return", "ip saddr { 10.244.0.3 } udp dport { 53 } return"}},
		"When a namespace is allowed it should take all its pods": {
			spec: `{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {name: b}}}]}]}`,
			into: []string{"ip saddr { 10.244.0.4 } return"}},
		"When a port has a name it should be that of the pod": {
			spec: `{podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: client}]}]}`, into: []string{"tcp dport { 2379 } return"}},
		"When no pod has the name of a port it should allow nothing": {
			spec: `{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}], ports: [{port: other}]}]}`, into: []string{}},
		"When ranges are allowed it should leave out their exceptions and IPv6": {
			spec: `{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}, {ipBlock: {cidr: "::/0"}}], ports: [{protocol: TCP}]}]}`,
			from: []string{"ip daddr != { 10.0.0.0/8 } meta l4proto tcp return"}},
		"When a range of ports is allowed it should be one":       {spec: `{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 100, endPort: 200}]}]}`, from: []string{"tcp dport { 100-200 } return"}},
		"When everything is allowed it should return for all":     {spec: `{podSelector: {}, policyTypes: [Egress], egress: [{}]}`, from: []string{"return"}},
		"When no pod is like the peer it should allow nothing":    {spec: `{podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: none}}}]}]}`, from: []string{}},
		"When types are left out it should be about ingress only": {spec: `{podSelector: {}, ingress: [{}]}`, into: []string{"return"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := world
			s.Policies = []*networkingv1.NetworkPolicy{policyOf(t, "a", tc.spec)}
			c := compiler{State: s}
			for direction, want := range map[networkingv1.PolicyType][]string{networkingv1.PolicyTypeIngress: tc.into, networkingv1.PolicyTypeEgress: tc.from} {
				body, isolated := c.body(etcd, direction)
				g.Expect(isolated).To(Equal(want != nil), string(direction))
				var lines []string
				for line := range strings.Lines(body) {
					lines = append(lines, strings.TrimSpace(line))
				}
				g.Expect(lines).To(ConsistOf(want))
			}
			g.Expect(c.errs).To(BeEmpty())
		})
	}
	t.Run("When two pods tell one address it should believe the younger", func(t *testing.T) {
		g := NewWithT(t)
		old, young := pod("a", "old", "10.244.0.9", "app=etcd"), pod("b", "young", "10.244.0.9")
		old.Created, young.Created = time.Unix(1, 0), time.Unix(2, 0)
		script, errs := Rules(State{Pods: []Pod{old, young}, Policies: []*networkingv1.NetworkPolicy{policyOf(t, "a", `{podSelector: {}, policyTypes: [Ingress]}`)}})
		g.Expect(errs).To(BeEmpty())
		g.Expect(script).NotTo(ContainSubstring("jump"))
	})
}

// Whatever comes in, in whatever order: the same text.
func TestRulesAreStable(t *testing.T) {
	specs := []string{`{podSelector: {}, policyTypes: [Ingress, Egress]}`, `{podSelector: {matchLabels: {app: x}}, ingress: [{from: [{podSelector: {}}]}]}`,
		`{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 53, protocol: UDP}]}]}`}
	rapid.Check(t, func(rt *rapid.T) {
		s := State{Namespaces: map[string]map[string]string{}}
		for i := range rapid.IntRange(0, 8).Draw(rt, "pods") {
			s.Pods = append(s.Pods, pod(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "ns"), string(rune('p'+i)), netip.AddrFrom4([4]byte{10, 244, 0, byte(2 + i)}).String(),
				"app="+rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "app")))
		}
		for i, spec := range specs {
			p := policyOf(t, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "policy"), spec)
			p.Name = string(rune('a' + i))
			s.Policies = append(s.Policies, p)
		}
		first, _ := Rules(s)
		slices.Reverse(s.Pods)
		slices.Reverse(s.Policies)
		if second, _ := Rules(s); first != second {
			rt.Fatalf("%s\nand\n%s", first, second)
		}
	})
}
