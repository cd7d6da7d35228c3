package autoscaler

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestScaleDown(t *testing.T) {
	three := func(mutate ...func(*Observed)) Observed {
		obs := Observed{
			Groups: []Group{group("workers", 1, 5, node("n1"), "n1", "n2", "n3")}, Nodes: []*corev1.Node{node("n1"), node("n2"), node("n3")},
			Running: []*corev1.Pod{pod("busy-1", "3", on("n1")), pod("busy-2", "3", on("n2"))},
		}
		for _, m := range mutate {
			m(&obs)
		}
		return obs
	}
	running := func(pods ...*corev1.Pod) func(*Observed) {
		return func(o *Observed) { o.Running = append(o.Running, pods...) }
	}
	budget := func(allowed int32) func(*Observed) {
		return func(o *Observed) {
			o.Budgets = []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}}
		}
	}
	long := Memory{UnneededSince: map[string]time.Time{"n1": noon.Add(-time.Hour), "n2": noon.Add(-time.Hour), "n3": noon.Add(-time.Hour)}}
	for name, tc := range map[string]struct {
		obs     Observed
		options func(*Options)
		memory  *Memory
		want    []string
		says    string // in the note of the group
		idle    string
	}{
		"When a node has been empty for long it should go":            {obs: three(), want: []string{"-n3"}, says: "shrinking to 2 machines: no pod has needed node n3 since 2026-11-21T11:00:00Z"},
		"When it has just become empty it should stay":                {obs: three(), memory: &Memory{}, says: "node n3 is not needed, and goes if that stays so until 2026-11-21T12:10:00Z"},
		"When min is reached it should stay":                          {obs: three(func(o *Observed) { o.Groups[0].Min = 3 }), says: "it has its minimum of 3 machines"},
		"When only DaemonSets and static pods run there it should go": {obs: three(running(pod("agent", "3", on("n3"), func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }), pod("static", "500m", on("n3"), annotated(mirrorPod, "x")))), want: []string{"-n3"}},
		"When its pods fit elsewhere it should go":                    {obs: three(running(pod("a", "1", on("n3")))), want: []string{"-n3"}, says: "only 25 % of node n3 is requested, and all its pods fit on others"},
		"When its pods fit nowhere it should stay":                    {obs: three(running(pod("a", "1500m", on("n3")))), says: "n3 is needed: pod default/a fits on no other node"},
		"When half of it is requested it should stay":                 {obs: three(running(pod("a", "1", on("n3")), pod("b", "1", on("n3")))), says: "is needed"},
		"When a pod says that it can't be moved it should stay":       {obs: three(running(pod("a", "1", on("n3"), annotated(safeToEvict, "false")))), says: "its annotation"},
		"When a pod has no controller it should stay":                 {obs: three(running(pod("a", "1", on("n3"), func(p *corev1.Pod) { p.OwnerReferences = nil }))), says: "no controller"},
		"When a pod of the system has no budget it should stay":       {obs: three(running(pod("a", "1", on("n3"), func(p *corev1.Pod) { p.Namespace = "kube-system" }))), says: "it is of the system"},
		"When a budget allows no disruption it should stay":           {obs: three(running(pod("a", "1", on("n3"))), budget(0)), says: "PodDisruptionBudget web allows no disruption"},
		"When a budget allows it it should go":                        {obs: three(running(pod("a", "1", on("n3"))), budget(1)), want: []string{"-n3"}},
		"When a pod is of low priority it should not keep a node":     {obs: three(running(pod("a", "3", on("n3"), priority(-100)))), want: []string{"-n3"}},
		"When the node says that it stays it should stay":             {obs: three(func(o *Observed) { o.Nodes[2].Annotations = map[string]string{scaleDownDisabled: "true"} }), says: "kept by its annotation"},
		"When only growth is wanted it should stay":                   {obs: three(), options: func(o *Options) { o.ScaleDown = false }, idle: "switched off"},
		"When a machine was just added it should stay":                {obs: three(func(o *Observed) { o.Groups[0].Machines[0].Created = noon.Add(-9 * time.Minute) }), idle: "a machine was added; nodes are removed again after 2026-11-21T12:01:00Z"},
		"When one was just removed it should wait as told":            {obs: three(), memory: &Memory{UnneededSince: long.UnneededSince, LastRemoval: noon.Add(-time.Minute)}, options: func(o *Options) { o.DelayAfterDelete = 5 * time.Minute }, idle: "a node was removed"},
		"When removing has failed it should wait":                     {obs: three(), memory: &Memory{UnneededSince: long.UnneededSince, LastFailure: noon.Add(-time.Minute)}, idle: "has failed"},
		"When machines are on their way it should stay":               {obs: three(func(o *Observed) { o.Groups[0].Replicas = 4 }), idle: "machines are being added"},
		"When machines are being replaced it should stay":             {obs: three(func(o *Observed) { o.Groups[0].Settling = "its machines are being replaced" }), says: "being replaced"},
		"When too much is there to be looked at it should stay":       {obs: three(func(o *Observed) { o.Truncated = "there are more than 5 pods" }), idle: "more than 5 pods"},
		"When two are empty it should remove both":                    {obs: three(func(o *Observed) { o.Running = o.Running[:1] }), want: []string{"-n2", "-n3"}},
		"When two are empty and one must stay it should remove one":   {obs: three(func(o *Observed) { o.Running = o.Running[:1]; o.Groups[0].Min = 2 }), want: []string{"-n2"}},
		"When two could each move to the other it should remove one": {obs: three(func(o *Observed) {
			o.Running = []*corev1.Pod{pod("x", "4", on("n1")), pod("a", "1", on("n2")), pod("b", "1", on("n3"))}
		}), want: []string{"-n2"}},
		"When a removal was interrupted after its mark it should go on":                      {obs: three(func(o *Observed) { o.Groups[0].Machines[2].Mark = markPrefix + "x" }), want: []string{"-n3"}},
		"When a removal was interrupted and the node is needed it should take the mark back": {obs: three(running(pod("a", "3", on("n3"))), func(o *Observed) { o.Groups[0].Machines[2].Mark = markPrefix + "x" }), want: []string{"unmark n3"}},
		"When somebody else has marked a machine it should leave it": {obs: three(func(o *Observed) {
			o.Groups[0].Machines[2].Mark = "yes"
			o.Running = append(o.Running, pod("c", "3", on("n3")))
		})},
		"When a marked machine is about to go it should leave it": {obs: three(func(o *Observed) { o.Groups[0].Machines[2].Mark = markPrefix + "x"; o.Groups[0].Replicas = 2 })},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, memory := Defaults(), long
			if tc.options != nil {
				tc.options(&o)
			}
			if tc.memory != nil {
				memory = *tc.memory
			}
			p := planFor(&tc.obs, o, memory, noon, func(int) int { return 0 })
			g.Expect(summary(p)).To(Equal(tc.want))
			g.Expect(p.Notes["workers"]).To(ContainSubstring(tc.says))
			g.Expect(p.Idle).To(ContainSubstring(tc.idle))
			if tc.idle == "" {
				g.Expect(p.Idle).To(BeEmpty())
			}
		})
	}
}

// drawWorld draws a cluster, in any state.
func drawWorld(t *rapid.T) (Observed, Options, Memory) {
	obs, m := Observed{}, Memory{UnneededSince: map[string]time.Time{}}
	sizes := []func(*corev1.Node){sized("2", "4Gi"), sized("4", "8Gi"), sized("8", "16Gi")}
	marks := []string{"", "", "", "yes", markPrefix + "x"}
	for i := range rapid.IntRange(0, 3).Draw(t, "groups") {
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		var names []string
		for j := range rapid.IntRange(0, 4).Draw(t, "nodes") {
			name := fmt.Sprintf("g%d-%d", i, j)
			n := node(name, size)
			if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
				notReady(n)
			}
			obs.Nodes, names = append(obs.Nodes, n), append(names, name)
			if rapid.Bool().Draw(t, "unneeded") {
				m.UnneededSince[name] = noon.Add(-time.Hour)
			}
		}
		g := group(fmt.Sprintf("g%d", i), rapid.IntRange(0, 3).Draw(t, "min"), 0, node("t", size), names...)
		g.Max = g.Min + rapid.IntRange(0, 4).Draw(t, "more")
		g.Replicas = max(0, g.Replicas+rapid.IntRange(-1, 2).Draw(t, "difference"))
		for j := range g.Machines {
			g.Machines[j].Mark = rapid.SampledFrom(marks).Draw(t, "mark")
			g.Machines[j].Deleting = rapid.IntRange(0, 9).Draw(t, "deleting") == 0
			g.Machines[j].Created = noon.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "age")) * time.Minute)
		}
		if rapid.IntRange(0, 9).Draw(t, "held") == 0 {
			g.Held = "it is paused"
		}
		obs.Groups = append(obs.Groups, g)
	}
	kinds := [][]func(*corev1.Pod){nil, nil, {alone}, {spreadOut}, {annotated(safeToEvict, "false")}, {priority(-100)}, {selecting(corev1.LabelHostname, "g0-0")}}
	for i := range rapid.IntRange(0, 25).Draw(t, "pods") {
		p := pod(fmt.Sprintf("p%d", i), rapid.SampledFrom([]string{"100m", "500m", "1", "1800m", "3", "20"}).Draw(t, "cpu"), rapid.SampledFrom(kinds).Draw(t, "kind")...)
		if len(obs.Nodes) > 0 && rapid.Bool().Draw(t, "runs") {
			p.Spec.NodeName = rapid.SampledFrom(obs.Nodes).Draw(t, "where").Name
			obs.Running = append(obs.Running, p)
		} else {
			obs.Pending = append(obs.Pending, p)
		}
	}
	o := Defaults()
	o.ScaleDown, o.Balance, o.DelayAfterAdd = rapid.Bool().Draw(t, "scaleDown"), rapid.Bool().Draw(t, "balance"), 0
	o.MaxNodesTotal = rapid.SampledFrom([]int{0, 0, 3, 8}).Draw(t, "total")
	return obs, o, m
}

func TestBounds(t *testing.T) {
	t.Run("When anything is the case it should keep to the bounds", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			obs, o, m := drawWorld(t)
			p := planFor(&obs, o, m, noon, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "random") })
			sum, change := 0, map[string]int{}
			for _, g := range obs.Groups {
				sum += g.Replicas
			}
			for _, g := range p.Grow {
				if g.Group.Held != "" || g.To <= g.From || g.To > g.Group.Max || g.From != g.Group.Replicas || change[g.Group.Name] != 0 {
					t.Fatalf("grows %s from %d to %d, with max %d, held %q", g.Group.Name, g.From, g.To, g.Group.Max, g.Group.Held)
				}
				change[g.Group.Name] = g.To - g.From
				sum += g.To - g.From
			}
			if len(p.Grow) > 0 && o.MaxNodesTotal > 0 && sum > o.MaxNodesTotal {
				t.Fatalf("grows to %d machines, of %d altogether", sum, o.MaxNodesTotal)
			}
			if len(p.Remove) > 0 && (!o.ScaleDown || len(p.Grow) > 0) {
				t.Fatalf("removes %v, which is not wanted now", summary(p))
			}
			for _, r := range p.Remove {
				change[r.Group.Name]--
				if r.Group.Held != "" || r.Group.Replicas+change[r.Group.Name] < r.Group.Min {
					t.Fatalf("shrinks %s by %d of %d, with min %d, held %q", r.Group.Name, -change[r.Group.Name], r.Group.Replicas, r.Group.Min, r.Group.Held)
				}
			}
		})
	})
}

// TestSettles plays a cluster with a scheduler as simple as the simulation: machines become nodes, pods get nodes, removed machines go.
func TestSettles(t *testing.T) {
	t.Run("When nothing changes by itself it should come to rest, and stay there", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			obs, o, m := drawWorld(t)
			o.ScaleDown = true
			for i := range obs.Groups {
				g := &obs.Groups[i]
				g.Held, g.Replicas = "", min(max(len(g.Machines), g.Min), g.Max)
				for j := range g.Machines {
					g.Machines[j].Mark, g.Machines[j].Deleting, g.Machines[j].Created = "", false, noon.Add(-time.Hour)
				}
			}
			for _, n := range obs.Nodes {
				n.Status.Conditions[0].Status = corev1.ConditionTrue
			}
			w := &played{obs: obs, now: noon}
			changed := 0
			for step := range 80 {
				w.settle()
				p := planFor(&w.obs, o, m, w.now, func(int) int { return 0 })
				m = p.Memory
				if len(p.Grow)+len(p.Remove) > 0 {
					changed = step
				}
				w.carryOut(p)
				w.now = w.now.Add(time.Minute)
			}
			if changed > 60 {
				t.Fatalf("still changes something after %d minutes", changed)
			}
		})
	})
}
