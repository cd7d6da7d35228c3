package autoscaler

import (
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// five pods of a processor each.
func five(mutate ...func(*corev1.Pod)) (list []*corev1.Pod) {
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		list = append(list, pod(name, "1", mutate...))
	}
	return list
}

func TestScaleUp(t *testing.T) {
	full := pod("full", "3500m", on("n1"))
	one := func(mutate ...func(*Observed)) Observed {
		obs := Observed{Groups: []Group{group("workers", 1, 5, node("n1"), "n1")}, Nodes: []*corev1.Node{node("n1")}, Running: []*corev1.Pod{full}}
		for _, m := range mutate {
			m(&obs)
		}
		return obs
	}
	pending := func(pods ...*corev1.Pod) func(*Observed) { return func(o *Observed) { o.Pending = pods } }
	for name, tc := range map[string]struct {
		obs     Observed
		options func(*Options)
		want    []string
		says    string // in the verdict of the first pod that nothing helps
	}{
		"When nothing waits it should add nothing":                  {obs: one()},
		"When pods fit nowhere it should add as many as they need":  {obs: one(pending(five()...)), want: []string{"workers 1→3"}},
		"When a pod fits on a node that there is it should wait":    {obs: one(pending(pod("small", "100m")))},
		"When DaemonSets take their part it should count them":      {obs: one(pending(five()...), func(o *Observed) { o.DaemonSets = append(o.DaemonSets, daemonSet("2")) }), want: []string{"workers 1→4"}},
		"When machines are on their way it should count on them":    {obs: one(pending(five()...), func(o *Observed) { o.Groups[0].Replicas = 3 })},
		"When some are on their way it should add only the rest":    {obs: one(pending(five()...), func(o *Observed) { o.Groups[0].Replicas = 2 }), want: []string{"workers 2→3"}},
		"When max is near it should stop at it":                     {obs: one(pending(append(five(alone), five(alone)...)...), func(o *Observed) { o.Groups[0].Max = 2 }), want: []string{"workers 1→2"}, says: "has its maximum of 2 machines"},
		"When max is reached it should say so":                      {obs: one(pending(five()...), func(o *Observed) { o.Groups[0].Max = 1 }), says: "workers: has its maximum of 1 machines"},
		"When maxNodesTotal is reached it should say so":            {obs: one(pending(five()...)), options: func(o *Options) { o.MaxNodesTotal = 1 }, says: "maxNodesTotal, which is 1, is reached"},
		"When maxNodesTotal is near it should stop at it":           {obs: one(pending(five(alone)...)), options: func(o *Options) { o.MaxNodesTotal = 3 }, want: []string{"workers 1→3"}, says: "maxNodesTotal"},
		"When a pod is larger than any machine it should say so":    {obs: one(pending(pod("huge", "64"))), says: "would not fit on a new machine: not enough cpu"},
		"When a selector matches no pool it should say so":          {obs: one(pending(pod("gpu", "1", selecting("gpu", "yes")))), says: "node selector or required node affinity does not match"},
		"When a taint is not tolerated it should say so":            {obs: one(pending(pod("a", "1")), func(o *Observed) { o.Groups[0].Template = likeNode(node("x", tainted("gpu"))) }), says: "taint gpu:NoSchedule is not tolerated"},
		"When pods are of low priority they should add nothing":     {obs: one(pending(five(priority(-11))...))},
		"When pods keep each other away it should add one for each": {obs: one(pending(five(alone)...)), want: []string{"workers 1→5"}, says: "maximum"},
		"When pods spread over nodes it should add one for each":    {obs: one(pending(pod("a", "600m", spreadOut), pod("b", "600m", spreadOut), pod("c", "600m", spreadOut))), want: []string{"workers 1→3"}},
		"When a pod is of a DaemonSet it should add nothing":        {obs: one(pending(pod("agent", "1", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" })))},
		"When the group is paused it should say so":                 {obs: one(pending(five()...), func(o *Observed) { o.Groups[0].Held = "it is paused" }), says: "workers: it is paused"},
		"When machines take too long it should not add more": {obs: one(pending(five()...), func(o *Observed) {
			o.Groups[0].Replicas = 2
			o.Groups[0].Machines = append(o.Groups[0].Machines, Machine{Name: "m2", Created: noon.Add(-16 * time.Minute)})
		}), says: "1 of its machines have not become nodes within 15m0s"},
		"When a machine is young it should count on it": {obs: one(pending(pod("a", "1")), func(o *Observed) {
			o.Groups[0].Replicas = 2
			o.Groups[0].Machines = append(o.Groups[0].Machines, Machine{Name: "m2", Created: noon.Add(-time.Minute)})
		})},
		"When a new node is not ready yet it should count on it": {obs: one(pending(pod("a", "1")), func(o *Observed) {
			o.Nodes[0] = node("n1", notReady)
			o.Groups[0].Machines[0].Created = noon.Add(-time.Minute)
		})},
		"When an old node is lost it should add one": {obs: one(pending(pod("a", "1")), func(o *Observed) { o.Nodes[0] = node("n1", notReady) }), want: []string{"workers 1→2"}},
		"When a node is being deleted it should not count on it": {obs: one(pending(pod("a", "100m")), func(o *Observed) {
			o.Groups[0].Machines[0].Deleting = true
			o.Groups[0].Replicas = 0
			o.Groups[0].Min = 0
		}), want: []string{"workers 0→1"}},
		"When a pool is empty it should grow from what it would offer": {obs: Observed{Groups: []Group{group("workers", 0, 5, node("x"))}, Pending: five()}, want: []string{"workers 0→2"}},
		"When nobody knows what it would offer it should say so":       {obs: Observed{Groups: []Group{{Name: "workers", Max: 3, Unknown: "it has no node"}}, Pending: five()}, says: "workers: it has no node"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := Defaults()
			if tc.options != nil {
				tc.options(&o)
			}
			p := planFor(&tc.obs, o, Memory{}, noon, func(int) int { return 0 })
			g.Expect(summary(p)).To(Equal(tc.want))
			if tc.says == "" {
				g.Expect(p.Helpless).To(BeEmpty())
			} else {
				g.Expect(p.Helpless).NotTo(BeEmpty())
				g.Expect(p.Helpless[0].Reason).To(ContainSubstring(tc.says))
			}
		})
	}
}

func TestExpanders(t *testing.T) {
	obs := func() Observed {
		return Observed{
			Groups:  []Group{group("large", 0, 5, node("l", sized("16", "64Gi"))), group("small", 0, 5, node("s", sized("2", "2Gi"))), group("xsmall", 0, 5, node("x", sized("2", "2Gi")))},
			Pending: []*corev1.Pod{pod("a", "2")},
		}
	}
	for name, tc := range map[string]struct {
		change func(*Observed, *Options)
		want   []string
	}{
		"When nothing is said it should waste least": {change: func(*Observed, *Options) {}, want: []string{"small 0→1"}},
		"When the user prefers one it should take that": {change: func(o *Observed, p *Options) {
			p.Expanders = []string{Priority, LeastWaste}
			o.Priorities = []Preference{{10, []*regexp.Regexp{regexp.MustCompile(".*")}}, {50, []*regexp.Regexp{regexp.MustCompile("^large$")}}}
		}, want: []string{"large 0→1"}},
		"When priorities are equal the next should decide": {change: func(o *Observed, p *Options) { p.Expanders = []string{Priority, LeastWaste} }, want: []string{"small 0→1"}},
		"When chance decides it should take what it says":  {change: func(o *Observed, p *Options) { p.Expanders = []string{Random} }, want: []string{"xsmall 0→1"}},
		"When one alone can take a pod it should be that":  {change: func(o *Observed, p *Options) { o.Pending = []*corev1.Pod{pod("a", "12")} }, want: []string{"large 0→1"}},
		"When two are needed it should grow both": {change: func(o *Observed, p *Options) {
			o.Groups[1].Template.Labels["disk"] = "fast"
			o.Pending = []*corev1.Pod{pod("a", "12"), pod("b", "2", selecting("disk", "fast"))}
		}, want: []string{"small 0→1", "large 0→1"}},
		"When pools are alike it should share": {change: func(o *Observed, p *Options) {
			p.Balance = true
			o.Groups[1].Template.Labels[corev1.LabelTopologyZone], o.Groups[2].Template.Labels[corev1.LabelTopologyZone] = "a", "b"
			o.Pending = five(func(p *corev1.Pod) { *p = *pod(p.Name, "2") })
		}, want: []string{"small 0→3", "xsmall 0→2"}},
		"When pools differ by a label it should not share": {change: func(o *Observed, p *Options) {
			p.Balance = true
			o.Groups[1].Template.Labels["disk"] = "fast"
			o.Pending = []*corev1.Pod{pod("a", "2"), pod("b", "2")}
		}, want: []string{"small 0→2"}},
		"When that label does not count it should share": {change: func(o *Observed, p *Options) {
			p.Balance, p.IgnoredLabels = true, []string{"disk"}
			o.Groups[1].Template.Labels["disk"] = "fast"
			o.Pending = []*corev1.Pod{pod("a", "2"), pod("b", "2")}
		}, want: []string{"small 0→1", "xsmall 0→1"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, options := obs(), Defaults()
			tc.change(&o, &options)
			p := planFor(&o, options, Memory{}, noon, func(n int) int { return n - 1 })
			NewWithT(t).Expect(summary(p)).To(Equal(tc.want))
		})
	}
}

func TestTemplates(t *testing.T) {
	g := NewWithT(t)
	made := podOf(&appsv1.DaemonSet{})
	g.Expect(made.Spec.Tolerations).NotTo(BeEmpty())
	g.Expect(taintsOf("", "a=b:NoSchedule,c:NoExecute,bad")).To(Equal([]corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}, {Key: "c", Effect: corev1.TaintEffectNoExecute}}))
	g.Expect(taintsOf(`[{"key":"x","effect":"NoSchedule"}]`, "a:NoExecute")).To(Equal([]corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}))
	g.Expect(likeNode(node("n", tainted("gpu"), tainted(corev1.TaintNodeNotReady))).Spec.Taints).To(HaveLen(1))
	parsed := parsePriorities("10: [\".*\"]\n50:\n- ^gpu-.*$\n- \"(\"\nx: [a]\n")
	g.Expect(parsed).To(HaveLen(2))
	g.Expect(parsePriorities("[1, 2")).To(BeNil())
}
