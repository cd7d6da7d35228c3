package capacity

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/autoscaler/simulate"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func node(name string, cpu int64, edit ...func(*corev1.Node)) Node {
	n := Node{
		Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}},
		Free:   Amounts{corev1.ResourceCPU: cpu, corev1.ResourceMemory: 8 << 30, corev1.ResourcePods: 100},
	}
	for _, e := range edit {
		e(n.Object)
	}
	n.Base = Amounts{}
	add(n.Base, n.Free, 1)
	return n
}

// base says what the node would have without hosted clusters.
func base(n Node, cpu int64) Node {
	n.Base[corev1.ResourceCPU] = cpu
	return n
}

func group(component string, count int, cpu int64, edit ...func(*corev1.PodSpec)) Group {
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Mi"),
	}}}}
	for _, e := range edit {
		e(&pod.Spec)
	}
	return Group{Component: component, Pod: simulate.Analyse(pod), Count: count}
}

func apart(g Group) Group { g.Apart = corev1.LabelHostname; return g }

func candidate(name string, age int, groups ...Group) Candidate {
	return Candidate{Name: name, Created: noon.Add(-time.Duration(age) * time.Minute), Groups: groups}
}

func pool(name string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"pool": name} }
}

func inPool(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels["pool"] = name }
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		world    World
		admitted []string
		lacks    map[string]string
		behind   map[string]string
	}{
		"When all fit it should admit all": {
			world:    World{Nodes: []Node{node("a", 1000)}, Queue: []Candidate{candidate("x", 2, group("etcd", 1, 400)), candidate("y", 1, group("etcd", 1, 600))}},
			admitted: []string{"x", "y"},
		},
		"When one more millicore is asked for than there is it should wait and say how much is missing": {
			world:    World{Nodes: []Node{base(node("a", 1000), 4000)}, Queue: []Candidate{candidate("x", 2, group("etcd", 1, 400)), candidate("y", 1, group("etcd", 1, 601))}},
			admitted: []string{"x"}, lacks: map[string]string{"y": "1m CPU is missing"},
		},
		"When the first doesn't fit a smaller one should not overtake it": {
			world:  World{Nodes: []Node{base(node("a", 500), 4000)}, Queue: []Candidate{candidate("small", 1, group("etcd", 1, 100)), candidate("large", 2, group("etcd", 1, 600))}},
			lacks:  map[string]string{"large": "100m CPU is missing", "small": ""},
			behind: map[string]string{"small": "large", "large": ""},
		},
		"When the first would fit on no node ever the others should go on": {
			world:    World{Nodes: []Node{node("a", 500)}, Queue: []Candidate{candidate("small", 1, group("etcd", 1, 100)), candidate("huge", 2, group("etcd", 1, 600))}},
			admitted: []string{"small"}, lacks: map[string]string{"huge": "100m CPU is missing"},
		},
		"When the first wants other nodes than the second it should not hold it back": {
			world: World{Nodes: []Node{base(node("a", 100, inPool("a")), 900), node("b", 500, inPool("b"))},
				Queue: []Candidate{candidate("x", 2, group("etcd", 1, 600, pool("a"))), candidate("y", 1, group("etcd", 1, 400, pool("b")))}},
			admitted: []string{"y"}, lacks: map[string]string{"x": "500m CPU is missing"},
		},
		"When they came at the same time the name should decide": {
			world:    World{Nodes: []Node{base(node("a", 500), 900)}, Queue: []Candidate{candidate("b", 1, group("etcd", 1, 400)), candidate("a", 1, group("etcd", 1, 400))}},
			admitted: []string{"a"}, lacks: map[string]string{"b": "300m CPU is missing"},
		},
		"When an admitted control plane has still to get its pods they should be kept room for": {
			world:    World{Nodes: []Node{base(node("a", 1000), 4000)}, Reserved: []Group{group("etcd of z", 1, 700)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400))}},
			lacks:    map[string]string{"x": "100m CPU is missing"},
			admitted: nil,
		},
		"When somebody else's pod waits for a place that it can get it should count, and not when it fits nowhere": {
			world: World{Nodes: []Node{base(node("a", 1000), 4000)}, Others: []Group{group("job", 1, 700), group("giant", 1, 90_000)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400))}},
			lacks: map[string]string{"x": "100m CPU is missing"},
		},
		"When the free room is scattered so that no node is large enough it should say so": {
			world: World{Nodes: []Node{base(node("a", 300), 4000), base(node("b", 300), 4000)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400))}},
			lacks: map[string]string{"x": "no node has room for etcd, which needs 400m CPU, 64Mi memory on one node"},
		},
		"When small pods could take the only place of a large one it should wait": {
			world: World{Nodes: []Node{base(node("a", 400), 4000), base(node("b", 300), 4000)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400), group("others", 3, 100))}},
			lacks: map[string]string{"x": "the free room is scattered, so that etcd, which needs 400m CPU, 64Mi memory on one node, is not sure to find a place"},
		},
		"When three members have to be apart two nodes should not do": {
			world: World{Nodes: []Node{node("a", 9000), node("b", 9000)}, Queue: []Candidate{candidate("x", 1, apart(group("etcd", 3, 100)))}},
			lacks: map[string]string{"x": "etcd needs 3 nodes apart (kubernetes.io/hostname) with room"},
		},
		"When three members have to be apart three nodes should do": {
			world:    World{Nodes: []Node{node("a", 900), node("b", 900), node("c", 900)}, Queue: []Candidate{candidate("x", 1, apart(group("etcd", 3, 300)), group("others", 5, 20))}},
			admitted: []string{"x"},
		},
		"When no node suits it should say so": {
			world: World{Nodes: []Node{node("a", 9000)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 100, pool("gone")))}},
			lacks: map[string]string{"x": "no node suits etcd: its node selector, affinity or tolerations match none that is ready"},
		},
		"When an admitted control plane waits for what can't be it should hold nobody back": {
			world:    World{Nodes: []Node{node("a", 1000)}, Reserved: []Group{group("etcd of z", 1, 100, pool("gone"))}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400))}},
			admitted: []string{"x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var admitted []string
			for name, v := range Decide(tc.world) {
				if v.Admitted {
					admitted = append(admitted, name)
				}
				if lack, ok := tc.lacks[name]; ok {
					g.Expect(v.Lack).To(Equal(lack), name)
				}
				if behind, ok := tc.behind[name]; ok {
					g.Expect(v.Behind).To(Equal(behind), name)
				}
			}
			slices.Sort(admitted)
			g.Expect(admitted).To(Equal(tc.admitted))
		})
	}
}

func TestSpare(t *testing.T) {
	g := NewWithT(t)
	spare := group("room for a rollout of etcd", 1, 300)
	c := candidate("x", 1, group("etcd", 1, 300))
	c.Spare = &spare
	g.Expect(Decide(World{Nodes: []Node{node("a", 599)}, Queue: []Candidate{c}})["x"].Admitted).To(BeFalse())
	g.Expect(Decide(World{Nodes: []Node{node("a", 600)}, Queue: []Candidate{c}})["x"].Admitted).To(BeTrue())
}

func TestMessage(t *testing.T) {
	g := NewWithT(t)
	w := World{Nodes: []Node{base(node("local", 310), 4000)}, Reserved: []Group{group("etcd of z", 1, 100)},
		Queue: []Candidate{candidate("clusters/a", 3, group("etcd", 1, 400)), candidate("clusters/b", 2, group("etcd", 1, 50))}}
	v := Decide(w)
	g.Expect(v["clusters/a"].Message(2)).To(Equal("The control plane needs 400m CPU, 64Mi memory. Free: 310m CPU, 8192Mi memory (local 310m CPU and 8192Mi memory), " +
		"of which 100m CPU, 64Mi memory is kept for pods that came before; 2 more nodes can't be used: not ready, cordoned, tainted or not selected. " +
		"Why it doesn't fit: 190m CPU is missing. It is number 1 of 2 in the queue, and starts by itself when there is room: add a node, or destroy a hosted cluster that is not needed"))
	g.Expect(v["clusters/b"].Message(0)).To(ContainSubstring("It is number 2 of 2 in the queue, behind HostedCluster clusters/a, and starts"))
}

// Whoever is admitted finds a place for every pod, whatever the scheduler does first and wherever it puts what; nobody of the same nodes
// overtakes; and the order in which the queue is given changes nothing.
func TestAdmittedAlwaysFinish(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		verdicts := Decide(w)
		again := w
		again.Queue = rapid.Permutation(w.Queue).Draw(t, "order")
		for name, v := range Decide(again) {
			if v.Admitted != verdicts[name].Admitted {
				t.Fatalf("%s depends on the order of the list", name)
			}
		}
		pods := slices.Clone(w.Reserved)
		for _, c := range w.Queue {
			if verdicts[c.Name].Admitted {
				pods = append(pods, c.Groups...)
			}
		}
		if len(pods) == len(w.Reserved) {
			return
		}
		schedule(t, w, pods, len(w.Reserved))
	})
}

func drawWorld(t *rapid.T) World {
	var w World
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		n := node(fmt.Sprintf("n%d", i), rapid.Int64Range(0, 1500).Draw(t, "free"))
		if rapid.Bool().Draw(t, "in a pool") {
			n.Object.Labels["pool"] = "a"
		}
		w.Nodes = append(w.Nodes, base(n, 2000))
	}
	drawGroup := func(name string) Group {
		var edit []func(*corev1.PodSpec)
		if rapid.IntRange(0, 3).Draw(t, "selector") == 0 {
			edit = append(edit, pool("a"))
		}
		g := group(name, rapid.IntRange(1, 3).Draw(t, "count"), rapid.Int64Range(1, 400).Draw(t, "cpu"), edit...)
		if rapid.IntRange(0, 3).Draw(t, "apart") == 0 {
			g = apart(g)
		}
		return g
	}
	if rapid.Bool().Draw(t, "reserved") {
		w.Reserved = []Group{drawGroup("reserved")}
	}
	if rapid.Bool().Draw(t, "others") {
		g := drawGroup("others")
		g.Apart = ""
		w.Others = []Group{g}
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "queue") {
		c := candidate(fmt.Sprintf("c%d", i), rapid.IntRange(0, 3).Draw(t, "age"))
		for j := range rapid.IntRange(1, 3).Draw(t, "groups") {
			c.Groups = append(c.Groups, drawGroup(fmt.Sprintf("c%d-%d", i, j)))
		}
		w.Queue = append(w.Queue, c)
	}
	return w
}

// schedule puts one pod after the other on any node that it fits, those of others among them. promised is from which group on a pod must find
// one: what was reserved before may have been promised too much by somebody else.
func schedule(t *rapid.T, w World, groups []Group, promised int) {
	f := newField(w.Nodes)
	for i := range f.nodes {
		free := Amounts{}
		add(free, f.nodes[i].Free, 1)
		f.nodes[i].Free = free
	}
	type pod struct {
		placed
		group int
		must  bool
	}
	var pods []pod
	for i, g := range slices.Concat(groups, w.Others) {
		p := f.place(g)
		for range g.Count {
			pods = append(pods, pod{p, i, i >= promised && i < len(groups)})
		}
	}
	used := map[int][]int{}
	for _, p := range rapid.Permutation(pods).Draw(t, "schedule") {
		var possible []int
		for _, i := range p.nodes {
			if fits(p.Pod.Requests, f.nodes[i].Free) && (p.Apart == "" || !slices.Contains(used[p.group], i)) {
				possible = append(possible, i)
			}
		}
		if len(possible) == 0 {
			if p.must {
				t.Fatalf("%s, admitted, finds no place", p.Component)
			}
			continue
		}
		i := rapid.SampledFrom(possible).Draw(t, "node")
		add(f.nodes[i].Free, p.Pod.Requests, -1)
		used[p.group] = append(used[p.group], i)
	}
}

func TestMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		world World
		want  Amounts
	}{
		"When there is too little it should say how much, with what came before": {
			world: World{Nodes: []Node{base(node("a", 1000), 4000)}, Reserved: []Group{group("etcd of z", 1, 700)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400))}},
			want:  Amounts{corev1.ResourceCPU: 100}},
		"When there is room it should be nothing": {
			world: World{Nodes: []Node{node("a", 1000)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400))}}},
		"When the room is scattered it should be nothing": {
			world: World{Nodes: []Node{base(node("a", 300), 4000), base(node("b", 300), 4000)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400))}}},
		"When no node suits it should be nothing": {
			world: World{Nodes: []Node{node("a", 1000)}, Queue: []Candidate{candidate("x", 1, group("etcd", 1, 400, pool("b")))}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := Decide(tc.world)["x"]
			g.Expect(got.Missing).To(HaveLen(len(tc.want)), "%v", got.Missing)
			for resource, n := range tc.want {
				g.Expect(got.Missing).To(HaveKeyWithValue(resource, n))
			}
		})
	}
}
