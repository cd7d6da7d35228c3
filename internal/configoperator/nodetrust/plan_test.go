package nodetrust

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodetrust"
)

const (
	present = "0123456789abcdef"
	former  = "fedcba9876543210"
)

func TestCondition(t *testing.T) {
	nodes := []string{"b", "a"}
	for name, c := range map[string]struct {
		obs    observed
		status metav1.ConditionStatus
		says   string
	}{
		"When all nodes have a ready pod with the present authorities it should be True": {
			observed{nodes: nodes, pods: []pod{{"a", present, true}, {"b", present, true}}}, "True", "all 2 nodes trust the new authorities; trust=" + present},
		"When there are no nodes it should be True": {observed{}, "True", "no nodes that would have to follow; trust=" + present},
		"When a node has no pod it should be named": {
			observed{nodes: nodes, pods: []pod{{"a", present, true}}}, "False", "1 of 2 nodes don't trust the new authorities, which wait for them: b (no pod of the DaemonSet runs there)."},
		"When a pod has the former authorities its node should be named": {
			observed{nodes: nodes, pods: []pod{{"a", present, true}, {"b", former, true}}}, "False", "b (its pod still has the old ones)"},
		"When a pod is not ready its node should be named": {
			observed{nodes: nodes, pods: []pod{{"a", present, false}, {"b", present, true}}}, "False", "a (its pod is not Ready)"},
		"When the former pod is still there beside the new one the new one should count": {
			observed{nodes: []string{"a"}, pods: []pod{{"a", present, true}, {"a", former, false}}}, "True", "all 1 nodes"},
		"When a pod has no node yet it should count for none": {
			observed{nodes: []string{"a"}, pods: []pod{{"", present, true}}}, "False", "a (no pod"},
		"When a pod is on a node that nobody knows it should count for none": {
			observed{nodes: []string{"a"}, pods: []pod{{"c", present, true}}}, "False", "a (no pod"},
		"When the release has no program for nodes it should say what to do": {observed{nodes: nodes, noImage: true}, "False", "replace the machines, then `hypershift rotate authorities --force`"},
		"When it has none and there are no nodes either it should be True":   {observed{noImage: true}, "True", "no nodes"},
		"When the hosted API does not answer it should be Unknown":           {observed{failed: true}, "Unknown", "successors of authorities wait"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.obs.hash = present
			got := condition(c.obs, 7)
			g.Expect(got.Type).To(Equal(hyperv1.NodesTrustAuthorities))
			g.Expect(got.Status).To(Equal(c.status))
			g.Expect(got.Message).To(ContainSubstring(c.says))
			g.Expect(got.ObservedGeneration).To(BeEquivalentTo(7))
			reported := nodetrust.Reported(got.Message)
			if c.status == metav1.ConditionTrue {
				g.Expect(reported).To(Equal(present))
			} else {
				g.Expect(reported).To(BeEmpty())
				g.Expect(got.Status).NotTo(Equal(metav1.ConditionTrue))
			}
		})
	}
	t.Run("When many nodes are waited for it should name ten", func(t *testing.T) {
		g := NewWithT(t)
		obs := observed{hash: present}
		for i := range 5000 {
			obs.nodes = append(obs.nodes, fmt.Sprintf("node-%04d", i))
		}
		got := condition(obs, 1)
		g.Expect(got.Message).To(And(ContainSubstring("5000 of 5000"), ContainSubstring("node-0009"), ContainSubstring(", 4990 more."), Not(ContainSubstring("node-0010"))))
	})
}
