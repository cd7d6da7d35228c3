package inplace

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func at(name, current, desired, state string) Machine {
	return Machine{Name: name, Node: name, Born: "v1", Current: current, Desired: desired, State: state, Version: "1.35.4"}
}

func observed(machines ...Machine) Observed {
	return Observed{Target: "v2", Current: "v1", MaxUnavailable: 1, Payload: true, Version: "1.36.3", Machines: machines, Pods: map[string]corev1.PodPhase{}}
}

func TestPlan(t *testing.T) {
	with := func(o Observed, f func(*Observed)) Observed { f(&o); return o }
	for name, tc := range map[string]struct {
		obs  Observed
		want Plan
	}{
		"When target and current are equal it should do nothing": {with(observed(at("a", "", "", "")), func(o *Observed) { o.Current = "v2" }), Plan{}},
		"When the configuration isn't there it should wait": {with(observed(at("a", "", "", "")), func(o *Observed) { o.Payload = false }),
			Plan{True: ptr.To("waiting for the configuration of version v2"), Recheck: payloadPoll}},
		"When all is old it should begin with as many as may be unavailable": {observed(at("b", "", "", ""), at("a", "v1", "v1", stateDone)),
			Plan{SetDesired: []string{"a"}, CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0"), Recheck: poll}},
		"When one is on its way it should not begin another": {observed(at("a", "v1", "v2", "Working"), at("b", "", "", "")),
			Plan{CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0"), Recheck: poll}},
		"When one has the files but isn't back it should wait for it": {observed(at("a", "v2", "v2", "Working"), at("b", "", "", "")),
			Plan{CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0"), Recheck: poll}},
		"When one is done it should go on, mark it and take its daemon away": {with(observed(at("a", "v2", "v2", stateDone), at("b", "", "", "")), func(o *Observed) { o.Pods["a"] = corev1.PodRunning }),
			Plan{SetDesired: []string{"b"}, CreatePods: []string{"b"}, DeletePods: []string{"a"}, Mark: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 1"), Recheck: poll}},
		"When a daemon failed it should be removed first": {with(observed(at("a", "v1", "v2", "Working")), func(o *Observed) { o.Pods["a"] = corev1.PodFailed }),
			Plan{DeletePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0"), Recheck: poll}},
		"When a node is degraded it should stop and say so": {observed(Machine{Name: "a", Node: "a", Born: "v1", Desired: "v2", State: stateDegraded, Reason: "disk full"}, at("b", "", "", "")),
			Plan{CreatePods: []string{"a"}, Objects: true, False: ptr.To("Node a in nodepool degraded: disk full"), Recheck: poll}},
		"When pods may not leave it should say which": {observed(Machine{Name: "a", Node: "a", Born: "v1", Desired: "v2", State: "Working", Blocked: "pod x/web may not be evicted"}),
			Plan{CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0; Node a can't be drained: pod x/web may not be evicted"), Recheck: poll}},
		"When all are done it should be complete":                   {observed(at("a", "v2", "v2", stateDone)), Plan{Mark: []string{"a"}, Complete: true}},
		"When a machine was made with the target it counts as done": {observed(Machine{Name: "a", Node: "a", Born: "v2", Version: "1.36.3"}), Plan{Complete: true}},
		"When nobody knows what a machine was made with it should be told the target": {observed(Machine{Name: "a", Node: "a"}),
			Plan{SetDesired: []string{"a"}, CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0"), Recheck: poll}},
		"When an old machine has yet to join it should not be complete": {observed(at("a", "v2", "v2", stateDone), Machine{Name: "b", Born: "v1"}),
			Plan{Mark: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 1"), Recheck: poll}},
		"When a machine is leaving it should not be waited for": {observed(at("a", "v2", "v2", stateDone), Machine{Name: "b", Node: "b", Born: "v1", Leaving: true}), Plan{Mark: []string{"a"}, Complete: true}},
		"When the target changed under way it should tell the same node": {observed(at("a", "v1", "v1.5", "Working"), at("b", "", "", "")),
			Plan{SetDesired: []string{"a"}, CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0"), Recheck: poll}},
		"When the limit is above the number of nodes it should begin with all": {with(observed(at("a", "", "", ""), at("b", "", "", "")), func(o *Observed) { o.MaxUnavailable = 5 }),
			Plan{SetDesired: []string{"a", "b"}, CreatePods: []string{"a", "b"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0"), Recheck: poll}},
		"When there are no machines it should be complete": {observed(), Plan{Complete: true}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(planFor(tc.obs)).To(BeComparableTo(tc.want)) })
	}
}

func TestPlanProperty(t *testing.T) {
	t.Run("When nodes say anything no more than the limit should be begun", rapid.MakeCheck(func(t *rapid.T) {
		version := rapid.SampledFrom([]string{"", "v1", "v2", "v3", "nonsense"})
		obs := observed()
		obs.MaxUnavailable = rapid.IntRange(-1, 4).Draw(t, "max")
		under := 0
		for i := range rapid.IntRange(0, 8).Draw(t, "machines") {
			m := at(fmt.Sprintf("m-%d", i), version.Draw(t, "current"), version.Draw(t, "desired"), rapid.SampledFrom([]string{"", "Done", "Working", "Degraded", "?"}).Draw(t, "state"))
			m.Leaving = rapid.Bool().Draw(t, "leaving")
			obs.Machines = append(obs.Machines, m)
			if !m.Leaving && m.updating() {
				under++
			}
		}
		plan := planFor(obs)
		begun := 0
		for _, node := range plan.SetDesired {
			i := slices.IndexFunc(obs.Machines, func(m Machine) bool { return m.Node == node })
			if obs.Machines[i].Leaving || obs.Machines[i].done("v2") {
				t.Fatalf("told %s", node)
			}
			if !obs.Machines[i].updating() {
				begun++
			}
		}
		if begun > 0 && begun+under > max(obs.MaxUnavailable, 1) {
			t.Fatalf("%d under way and %d begun, limit %d", under, begun, obs.MaxUnavailable)
		}
		if plan.Complete && slices.ContainsFunc(obs.Machines, func(m Machine) bool { return !m.Leaving && !m.done("v2") }) {
			t.Fatal("complete too early")
		}
	}))
}

func TestDrain(t *testing.T) {
	g := NewWithT(t)
	for name, tc := range map[string]struct {
		annotations map[string]string
		drain, ok   bool
	}{
		"When a node asks for nothing":       {nil, false, false},
		"When it asks for a drain":           {map[string]string{desiredDrain: "drain-v2"}, true, true},
		"When that was done":                 {map[string]string{desiredDrain: "drain-v2", lastAppliedDrain: "drain-v2"}, false, false},
		"When it asks to come back":          {map[string]string{desiredDrain: "uncordon-v2", lastAppliedDrain: "drain-v2"}, false, true},
		"When it asks for something unheard": {map[string]string{desiredDrain: "format-disk"}, false, false},
	} {
		drain, ok := drainOf(tc.annotations)
		g.Expect([]bool{drain, ok}).To(Equal([]bool{tc.drain, tc.ok}), name)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	pod := func(f func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		f(p)
		return p
	}
	deleted := pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-stuckAfter - time.Second)} })
	g.Expect(evictable(pod(func(*corev1.Pod) {}), "n", true, now)).To(BeTrue())
	g.Expect(evictable(pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), "n", true, now)).To(BeFalse())
	g.Expect(evictable(pod(func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: ptr.To(true)}}
	}), "n", true, now)).To(BeFalse())
	g.Expect(evictable(pod(func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} }), "n", true, now)).To(BeFalse())
	g.Expect(evictable(pod(func(p *corev1.Pod) { p.Namespace, p.Name = "pool-upgrade", daemonPrefix+"n" }), "n", true, now)).To(BeFalse())
	g.Expect(evictable(deleted, "n", true, now)).To(BeTrue(), "on a node that answers it is waited for")
	g.Expect(evictable(deleted, "n", false, now)).To(BeFalse())
}
