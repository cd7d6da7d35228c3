package placement

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

// rules are what a placeholder says of nodes beside their labels: keys that keep its pods apart, and where they must not be.
func rules(p *Placeholder, claimed map[string]string) (apart []string, not map[string][]string) {
	a := p.Deployment(Namespace, "registry.invalid/operator:1", claimed).Spec.Template.Spec.Affinity
	for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		apart = append(apart, term.TopologyKey)
	}
	not = map[string][]string{}
	if a.NodeAffinity != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				not[e.Key] = e.Values
			}
		}
	}
	return apart, not
}

func TestAwaited(t *testing.T) {
	zones := []string{corev1.LabelTopologyZone, corev1.LabelHostname, hyperv1.PairedNodesLabel}
	hosts := zones[1:]
	mine := map[string]string{"p1": "clusters-demo"}
	for name, tc := range map[string]struct {
		nodes   []Node
		claimed map[string]string
		apart   []string
		not     map[string][]string
	}{
		"When a zone lacks a node and another has a spare one it should wait for one elsewhere": {
			[]Node{node("a", "p1", "small", "z1", "clusters-demo"), node("b", "p1", "small", "z1", ""), down(node("c", "p1", "small", "z2", "clusters-demo"))}, mine,
			zones, map[string][]string{corev1.LabelTopologyZone: {"z1"}}},
		"When there are no zones it should wait for another node": {
			[]Node{node("a", "p1", "small", "", "clusters-demo"), down(node("b", "p1", "small", "", "clusters-demo"))}, mine,
			zones, map[string][]string{corev1.LabelHostname: {"a"}}},
		"When there is one zone it should wait for another node": {
			[]Node{node("a", "p1", "small", "z1", "clusters-demo"), down(node("b", "p1", "small", "z1", "clusters-demo"))}, mine,
			hosts, map[string][]string{corev1.LabelHostname: {"a"}}},
		"When it has nothing and there is one zone two nodes there should do": {
			[]Node{node("a", "p1", "small", "z1", "")}, nil, hosts, map[string][]string{}},
		"When it has nothing and there are no nodes it should wait for a pair in different zones": {
			nil, map[string]string{"p9": "clusters-other"}, zones, map[string][]string{hyperv1.PairedNodesLabel: {"p9"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := Awaited(demo, Decide(demo, World{Nodes: tc.nodes, Pairs: tc.claimed}))
			g.Expect(p).NotTo(BeNil())
			apart, not := rules(p, tc.claimed)
			g.Expect(apart).To(Equal(tc.apart))
			g.Expect(not).To(Equal(tc.not))
		})
	}
}

func TestWarm(t *testing.T) {
	sizes := []schedulingv1alpha1.SizeConfiguration{{Name: "small", Management: &schedulingv1alpha1.Management{Placeholders: 1}}, {Name: "large"}}
	for name, tc := range map[string]struct {
		nodes []Node
		zones bool
	}{
		"When there are several zones a warm pair should be in two of them": {[]Node{node("a", "p1", "small", "z1", ""), node("b", "p1", "small", "z2", "")}, true},
		"When there is one zone a warm pair should be two nodes of it":      {[]Node{node("a", "p1", "small", "z1", ""), node("b", "p1", "small", "z1", "")}, false},
		"When there are no nodes yet a warm pair should be in two zones":    {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			list := Warm(sizes, tc.nodes)
			g.Expect(list).To(HaveLen(1))
			apart, _ := rules(&list[0], nil)
			g.Expect(apart).To(ContainElement(corev1.LabelHostname))
			if tc.zones {
				g.Expect(apart).To(ContainElement(corev1.LabelTopologyZone))
			} else {
				g.Expect(apart).NotTo(ContainElement(corev1.LabelTopologyZone))
			}
		})
	}
}
