package placement

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func node(name, pair, size, zone, owner string) Node {
	n := Node{Name: name, Usable: true, Labels: map[string]string{hyperv1.RequestServingComponentLabel: "true", hyperv1.PairedNodesLabel: pair, hyperv1.ClusterSizeLabel: size, corev1.LabelTopologyZone: zone}}
	if owner != "" {
		n.Labels[ClusterLabel] = owner
	}
	return n
}

func down(n Node) Node { n.Usable = false; return n }

var demo = Cluster{Namespace: "clusters-demo", Name: "demo", HostedNamespace: "clusters", Size: "small", Places: 2}

func TestDecide(t *testing.T) {
	large := demo
	large.Size = "large"
	single := demo
	single.Places = 1
	for name, tc := range map[string]struct {
		cluster Cluster
		world   World
		want    Plan
	}{
		"When a pair is free it should claim it, and take a node in each of two zones": {demo,
			World{Nodes: []Node{node("a", "p1", "small", "z1", ""), node("b", "p1", "small", "z1", ""), node("c", "p1", "small", "z2", "")}},
			Plan{Pair: "p1", Take: []string{"a", "c"}, Placed: true, Own: "p1", Reason: Claimed}},
		"When a pair is another's it should take the next one": {demo,
			World{Nodes: []Node{node("a", "p1", "small", "z1", ""), node("b", "p1", "small", "z2", ""), node("c", "p2", "small", "z1", ""), node("d", "p2", "small", "z2", "")}, Pairs: map[string]string{"p1": "clusters-other"}},
			Plan{Pair: "p2", Take: []string{"c", "d"}, Placed: true, Own: "p2", Reason: Claimed}},
		"When a pair has nodes in one zone only it should wait": {demo,
			World{Nodes: []Node{node("a", "p1", "small", "z1", ""), node("b", "p1", "small", "z1", ""), node("c", "p2", "small", "z2", "")}},
			Plan{Missing: 2, Reason: WaitingForNodes}},
		"When nodes have no name of a pair they should not be taken for one": {demo,
			World{Nodes: []Node{node("a", "", "small", "z1", ""), node("b", "", "small", "z2", "")}}, Plan{Missing: 2, Reason: WaitingForNodes}},
		"When there are no zones two nodes should do": {demo,
			World{Nodes: []Node{node("a", "p1", "small", "", ""), node("b", "p1", "small", "", "")}},
			Plan{Pair: "p1", Take: []string{"a", "b"}, Placed: true, Own: "p1", Reason: Claimed}},
		"When it has all it should do nothing": {demo,
			World{Nodes: []Node{node("a", "p1", "small", "z1", "clusters-demo"), node("b", "p1", "small", "z2", "clusters-demo")}, Pairs: map[string]string{"p1": "clusters-demo"}},
			Plan{Placed: true, Own: "p1", Reason: Claimed}},
		"When the claim is lost it should be written again": {demo,
			World{Nodes: []Node{node("a", "p1", "small", "z1", "clusters-demo"), node("b", "p1", "small", "z2", "clusters-demo")}},
			Plan{Pair: "p1", Placed: true, Own: "p1", Reason: Claimed}},
		"When a node fails another of the pair should replace it, and it should go when its pods have gone": {demo,
			World{Nodes: []Node{down(node("a", "p1", "small", "z1", "clusters-demo")), node("b", "p1", "small", "z2", "clusters-demo"), node("c", "p1", "small", "z1", "")},
				Pairs: map[string]string{"p1": "clusters-demo"}, Busy: map[string]bool{"a": true, "b": true}},
			Plan{Take: []string{"c"}, Placed: true, Own: "p1", Waits: true, Reason: Resizing}},
		"When a node fails and there is no other it should keep all and wait": {demo,
			World{Nodes: []Node{down(node("a", "p1", "small", "z1", "clusters-demo")), node("b", "p1", "small", "z2", "clusters-demo")}, Pairs: map[string]string{"p1": "clusters-demo"}},
			Plan{Own: "p1", Missing: 1, Reason: WaitingForNodes}},
		"When the size changes it should take nodes of that size in the same pair, and release the others once they are empty": {large,
			World{Nodes: []Node{node("a", "p1", "small", "z1", "clusters-demo"), node("b", "p1", "small", "z2", "clusters-demo"), node("c", "p1", "large", "z1", ""), node("d", "p1", "large", "z2", ""),
				node("e", "p0", "large", "z1", ""), node("f", "p0", "large", "z2", "")}, Pairs: map[string]string{"p1": "clusters-demo"}, Busy: map[string]bool{"b": true}},
			Plan{Take: []string{"c", "d"}, Placed: true, Own: "p1", Release: []string{"a"}, Waits: true, Reason: Resizing}},
		"When a node that was replaced comes back without pods it should be given back, and not the one where they are now": {demo,
			World{Nodes: []Node{node("n1", "p1", "small", "z1", "clusters-demo"), node("n2", "p1", "small", "z2", "clusters-demo"), node("n9", "p1", "small", "z1", "clusters-demo")},
				Pairs: map[string]string{"p1": "clusters-demo"}, Busy: map[string]bool{"n2": true, "n9": true}},
			Plan{Placed: true, Own: "p1", Release: []string{"n1"}, Reason: Claimed}},
		"When there are more zones than it needs it should keep those with pods": {demo,
			World{Nodes: []Node{node("a", "p1", "small", "z1", "clusters-demo"), node("b", "p1", "small", "z2", "clusters-demo"), node("c", "p1", "small", "z3", "clusters-demo")},
				Pairs: map[string]string{"p1": "clusters-demo"}, Busy: map[string]bool{"b": true, "c": true}},
			Plan{Placed: true, Own: "p1", Release: []string{"a"}, Reason: Claimed}},
		"When a zone comes back for which another node of the first one stood in it should keep that until no pod is there": {demo,
			World{Nodes: []Node{node("a1", "p1", "small", "z1", "clusters-demo"), node("a2", "p1", "small", "z1", "clusters-demo"), node("b", "p1", "small", "z2", "")},
				Pairs: map[string]string{"p1": "clusters-demo"}, Busy: map[string]bool{"a1": true, "a2": true}},
			Plan{Take: []string{"b"}, Placed: true, Own: "p1", Waits: true, Stuck: []string{"a2"}, Reason: Resizing}},
		"When pods have moved to the zone that came back it should give back the node that stood in for it": {demo,
			World{Nodes: []Node{node("a1", "p1", "small", "z1", "clusters-demo"), node("a2", "p1", "small", "z1", "clusters-demo"), node("b", "p1", "small", "z2", "clusters-demo")},
				Pairs: map[string]string{"p1": "clusters-demo"}, Busy: map[string]bool{"a2": true, "b": true}},
			Plan{Placed: true, Own: "p1", Release: []string{"a1"}, Reason: Claimed}},
		"When one node is enough it should take one": {single,
			World{Nodes: []Node{node("a", "p1", "small", "z1", "")}}, Plan{Pair: "p1", Take: []string{"a"}, Placed: true, Own: "p1", Reason: Claimed}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := Decide(tc.cluster, tc.world)
			g.Expect(got.Message).NotTo(BeEmpty())
			for _, name := range got.Stuck {
				g.Expect(got.Message).To(ContainSubstring("keeps " + name))
			}
			got.Message, got.Zones, got.Hosts, got.OneZone = "", nil, nil, false // see TestAwaited
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestTaints(t *testing.T) {
	g := NewWithT(t)
	other := corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoExecute}
	n := Node{Taints: []corev1.Taint{{Key: ClusterLabel, Value: "clusters-old", Effect: corev1.TaintEffectNoSchedule}, other}}
	labels, taints := Given(demo, n)
	g.Expect(*labels[ClusterLabel]).To(Equal("clusters-demo"))
	g.Expect(taints).To(Equal([]corev1.Taint{other, {Key: ClusterLabel, Value: "clusters-demo", Effect: corev1.TaintEffectNoSchedule}}))
	labels, taints = Released(n)
	g.Expect(labels).To(HaveKeyWithValue(ClusterLabel, BeNil()))
	g.Expect(taints).To(Equal([]corev1.Taint{other}))
}

// pods are where those of each cluster are that serve requests: like a scheduler's, they go to nodes of their cluster, of its size and in different zones; nobody moves one from
// a node that works and has the right size.
type pods map[string]map[string]bool

// settle starts pods of a placed cluster that have no node, on one of its nodes, and moves those from nodes of another size and from nodes that fail.
func (p pods) settle(c Cluster, nodes map[string]Node) {
	on := p[c.Namespace]
	if on == nil {
		on = map[string]bool{}
		p[c.Namespace] = on
	}
	zones := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(on)) {
		if n := nodes[name]; n.Usable && n.Labels[hyperv1.ClusterSizeLabel] == c.Size {
			zones[n.Labels[corev1.LabelTopologyZone]] = true
		} else {
			delete(on, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		if zone := n.Labels[corev1.LabelTopologyZone]; n.Labels[ClusterLabel] == c.Namespace && n.Usable && n.Labels[hyperv1.ClusterSizeLabel] == c.Size && !zones[zone] && len(on) < c.Places {
			zones[zone], on[name] = true, true
		}
	}
}

// Clusters come, go, change their sizes and lose nodes in any order: no node and no pair is ever two clusters', what a cluster that is placed has is never
// taken from it while its pods are there, and in the end everybody who can be is placed and nothing more is written.
func TestFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := map[string]Node{}
		for p := range rapid.IntRange(1, 4).Draw(t, "pairs") {
			for _, size := range []string{"small", "large"} {
				for i := range rapid.IntRange(2, 4).Draw(t, "nodes") {
					n := node(fmt.Sprintf("n-%d-%s-%d", p, size, i), fmt.Sprintf("p%d", p), size, fmt.Sprintf("z%d", i%2), "")
					nodes[n.Name] = n
				}
			}
		}
		pairs, clusters, running := map[string]string{}, map[string]Cluster{}, pods{}
		pass := func(c Cluster) bool {
			busy := running[c.Namespace]
			plan := Decide(c, World{Nodes: slices.Collect(maps.Values(nodes)), Pairs: pairs, Busy: busy})
			if plan.Pair != "" {
				if pairs[plan.Pair] != "" {
					t.Fatalf("pair %s is claimed twice", plan.Pair)
				}
				pairs[plan.Pair] = c.Namespace
			}
			for _, name := range plan.Take {
				if nodes[name].Labels[ClusterLabel] != "" {
					t.Fatalf("%s is taken twice", name)
				}
				nodes[name].Labels[ClusterLabel] = c.Namespace
			}
			for _, name := range plan.Release {
				if busy[name] {
					t.Fatalf("%s is released although pods are there", name)
				}
				delete(nodes[name].Labels, ClusterLabel)
			}
			return plan.Pair != "" || len(plan.Take)+len(plan.Release) > 0 || plan.Waits
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "cluster")
			c, there := clusters[name]
			switch step := rapid.IntRange(0, 6).Draw(t, "step"); {
			case step == 0 && there: // it is deleted
				delete(clusters, name)
				delete(running, name)
				maps.DeleteFunc(pairs, func(_, owner string) bool { return owner == name })
				for _, n := range nodes {
					if n.Labels[ClusterLabel] == name {
						delete(n.Labels, ClusterLabel)
					}
				}
			case step == 1:
				n := nodes[rapid.SampledFrom(slices.Sorted(maps.Keys(nodes))).Draw(t, "node")]
				n.Usable = !n.Usable
				nodes[n.Name] = n
			case !there || step == 2:
				clusters[name] = Cluster{Namespace: name, Name: name, Size: rapid.SampledFrom([]string{"small", "large"}).Draw(t, "size"), Places: 2}
			case step == 3:
				running.settle(c, nodes)
			case step == 4 && len(running[name]) > 0: // a node fails, its pods move, and it comes back
				n := nodes[rapid.SampledFrom(slices.Sorted(maps.Keys(running[name]))).Draw(t, "flaps")]
				n.Usable = false
				nodes[n.Name] = n
				pass(c)
				running.settle(c, nodes)
				n.Usable = true
				nodes[n.Name] = n
			default:
				pass(c)
			}
		}
		for name, n := range nodes {
			n.Usable = true
			nodes[name] = n
		}
		for range 200 {
			changed := false
			for _, name := range slices.Sorted(maps.Keys(clusters)) {
				changed = pass(clusters[name]) || changed
				running.settle(clusters[name], nodes)
			}
			if !changed {
				break
			}
		}
		for _, c := range clusters {
			plan := Decide(c, World{Nodes: slices.Collect(maps.Values(nodes)), Pairs: pairs, Busy: running[c.Namespace]})
			if plan.Placed == (plan.Own == "") || len(plan.Take)+len(plan.Release) > 0 || plan.Waits {
				t.Fatalf("it does not settle: %+v", plan)
			}
		}
	})
}
