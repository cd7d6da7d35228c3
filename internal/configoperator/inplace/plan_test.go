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
	return Machine{Name: name, Node: name, Born: "v1", Current: current, Desired: desired, State: state, Version: "1.35.4", Ready: true}
}

func observed(machines ...Machine) Observed {
	return Observed{Target: "v2", Current: "v1", MaxUnavailable: 1, Payload: true, Version: "1.36.3", Machines: machines, Pods: map[string]corev1.PodPhase{}}
}

func TestPlan(t *testing.T) {
	with := func(o Observed, f func(*Observed)) Observed { f(&o); return o }
	held := func(after time.Duration) func(*Observed) {
		return func(o *Observed) { o.Held, o.HeldFor = "it is paused", after }
	}
	away := func(m Machine) Machine { m.Ready = false; return m }
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
		"When a node is degraded it should stop and say so": {observed(Machine{Name: "a", Node: "a", Ready: true, Born: "v1", Desired: "v2", State: stateDegraded, Reason: "disk full"}, at("b", "", "", "")),
			Plan{CreatePods: []string{"a"}, Objects: true, False: ptr.To("Node a in nodepool degraded: disk full"), Recheck: poll}},
		"When pods may not leave it should say which": {observed(Machine{Name: "a", Node: "a", Ready: true, Born: "v1", Desired: "v2", State: "Working", Blocked: "pod x/web may not be evicted"}),
			Plan{CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0; Node a can't be drained: pod x/web may not be evicted; make the pods satisfy their PodDisruptionBudgets (more replicas, or another budget), or limit the wait with spec.nodeDrainTimeout of the NodePool"), Recheck: poll}},
		"When pods may not leave and the wait is limited it should say when it ends": {with(observed(Machine{Name: "a", Node: "a", Ready: true, Born: "v1", Desired: "v2", State: "Working", Blocked: "pod x/web may not be evicted"}), func(o *Observed) { o.DrainTimeout = 5 * time.Minute }),
			Plan{CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0; Node a can't be drained: pod x/web may not be evicted; a node that has drained for 5m0s (spec.nodeDrainTimeout) is changed with the pods that are left"), Recheck: poll}},
		"When all are done it should be complete":                   {observed(at("a", "v2", "v2", stateDone)), Plan{Mark: []string{"a"}, Complete: true}},
		"When a machine was made with the target it counts as done": {observed(Machine{Name: "a", Node: "a", Ready: true, Born: "v2", Version: "1.36.3"}), Plan{Complete: true}},
		"When nobody knows what a machine was made with it should be told the target": {observed(Machine{Name: "a", Node: "a", Ready: true}),
			Plan{SetDesired: []string{"a"}, CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0"), Recheck: poll}},
		"When an old machine has yet to join it should not be complete": {observed(at("a", "v2", "v2", stateDone), Machine{Name: "b", Born: "v1"}),
			Plan{Mark: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 1; not joined yet: Machine b"), Recheck: poll}},
		"When many machines have yet to join it should name some": {with(observed(Machine{Name: "d"}, Machine{Name: "c"}, Machine{Name: "b"}, Machine{Name: "a"}, Machine{Name: "e", Leaving: true}), func(o *Observed) { o.Version = "" }),
			Plan{Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 0. Upgraded: 0; not joined yet: Machine a, Machine b, Machine c, and 1 more"), Recheck: poll}},
		"When a machine is leaving it should not be waited for": {observed(at("a", "v2", "v2", stateDone), Machine{Name: "b", Node: "b", Born: "v1", Leaving: true}), Plan{Mark: []string{"a"}, Complete: true}},
		"When the target changed under way it should tell the same node": {observed(at("a", "v1", "v1.5", "Working"), at("b", "", "", "")),
			Plan{SetDesired: []string{"a"}, CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0"), Recheck: poll}},
		"When the limit is above the number of nodes it should begin with all": {with(observed(at("a", "", "", ""), at("b", "", "", "")), func(o *Observed) { o.MaxUnavailable = 5 }),
			Plan{SetDesired: []string{"a", "b"}, CreatePods: []string{"a", "b"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0"), Recheck: poll}},
		"When something holds and nothing is under way it should write nothing, and look again when that ends": {with(observed(at("a", "", "", ""), at("b", "v2", "v2", stateDone)), held(time.Hour)),
			Plan{Mark: []string{"b"}, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 1; no other node is begun: it is paused"), Recheck: time.Hour}},
		"When something holds that only a change ends it should wait for that": {with(observed(at("a", "", "", "")), held(0)),
			Plan{True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0; no other node is begun: it is paused")}},
		"When something holds the node under way should go on": {with(observed(at("a", "v1", "v2", "Working"), at("b", "", "", "")), func(o *Observed) { held(time.Hour)(o); o.MaxUnavailable = 2 }),
			Plan{CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0; no other node is begun: it is paused"), Recheck: poll}},
		"When what holds ends soon it should look again then": {with(observed(at("a", "v2", "v2", "Working")), held(time.Second)),
			Plan{CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0; no other node is begun: it is paused"), Recheck: time.Second}},
		"When something holds and the target changed the node under way should be told": {with(observed(at("a", "v1", "v1.5", "Working"), at("b", "", "", "")), held(0)),
			Plan{SetDesired: []string{"a"}, CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0; no other node is begun: it is paused"), Recheck: poll}},
		"When the last node finishes while something holds it should be complete": {with(observed(at("a", "v2", "v2", stateDone)), held(time.Hour)), Plan{Mark: []string{"a"}, Complete: true}},
		"When a node that is done isn't ready it should begin no other, and say which": {observed(away(at("a", "v2", "v2", stateDone)), at("b", "", "", "")),
			Plan{Mark: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 1; not ready: Node a"), Recheck: poll}},
		"When a node that is to be changed isn't ready it should be told before others": {observed(at("a", "", "", ""), away(at("b", "", "", ""))),
			Plan{SetDesired: []string{"b"}, CreatePods: []string{"b"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0; not ready: Node b"), Recheck: poll}},
		"When there is room beside a node that isn't ready others should be told, too": {with(observed(at("a", "", "", ""), away(at("b", "", "", "")), at("c", "", "", "")), func(o *Observed) { o.MaxUnavailable = 2 }),
			Plan{SetDesired: []string{"b", "a"}, CreatePods: []string{"a", "b"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 3. Upgraded: 0; not ready: Node b"), Recheck: poll}},
		"When a node that is under way isn't ready it should count once": {with(observed(away(at("a", "v1", "v2", "Working")), at("b", "", "", "")), func(o *Observed) { o.MaxUnavailable = 2 }),
			Plan{SetDesired: []string{"b"}, CreatePods: []string{"a", "b"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0; not ready: Node a"), Recheck: poll}},
		"When as many are under way as may be one that isn't ready should wait, too": {observed(at("a", "v1", "v2", "Working"), away(at("b", "", "", ""))),
			Plan{CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 2. Upgraded: 0; not ready: Node b"), Recheck: poll}},
		"When another is away already one that is away, too, should be told": {observed(away(at("a", "v2", "v2", stateDone)), away(at("b", "", "", "")), at("c", "", "", "")),
			Plan{SetDesired: []string{"b"}, CreatePods: []string{"b"}, Mark: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 3. Upgraded: 1; not ready: Node a, Node b"), Recheck: poll}},
		"When many aren't ready it should name some": {with(observed(away(at("a", "v2", "v2", stateDone)), away(at("b", "v2", "v2", stateDone)), away(at("c", "v2", "v2", stateDone)), away(at("d", "v2", "v2", stateDone)), at("e", "", "", "")), func(o *Observed) { o.Version = "" }),
			Plan{Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 5. Upgraded: 4; not ready: Node a, Node b, Node c, and 1 more"), Recheck: poll}},
		"When a machine is leaving it should not matter whether its node is ready": {observed(at("a", "", "", ""), Machine{Name: "b", Node: "b", Born: "v1", Leaving: true}),
			Plan{SetDesired: []string{"a"}, CreatePods: []string{"a"}, Objects: true, True: ptr.To("Upgrade in progress. Total Nodes: 1. Upgraded: 0"), Recheck: poll}},
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
		obs.Held = rapid.SampledFrom([]string{"", "", "it is paused"}).Draw(t, "held")
		for i := range rapid.IntRange(0, 8).Draw(t, "machines") {
			m := at(fmt.Sprintf("m-%d", i), version.Draw(t, "current"), version.Draw(t, "desired"), rapid.SampledFrom([]string{"", "Done", "Working", "Degraded", "?"}).Draw(t, "state"))
			m.Leaving, m.Ready = rapid.Bool().Draw(t, "leaving"), rapid.Bool().Draw(t, "ready")
			obs.Machines = append(obs.Machines, m)
		}
		checkPlan(t, obs, planFor(obs))
	}))
}

// checkPlan counts for itself: a node is away that is told something else than it has, isn't done with the target, or isn't ready.
func checkPlan(t *rapid.T, obs Observed, plan Plan) {
	limit := max(obs.MaxUnavailable, 1)
	under, unready, begun, begunReady, passedOver := 0, 0, 0, 0, 0
	for _, m := range obs.Machines {
		told := slices.Contains(plan.SetDesired, m.Node)
		busy := m.updating() || m.current() == "v2" && !m.done("v2")
		switch {
		case m.Leaving || m.done("v2"):
			if told {
				t.Fatalf("told %s", m.Node)
			}
			if !m.Leaving && !m.Ready {
				unready++
			}
		case busy:
			under++
		case told && m.Ready:
			begun, begunReady = begun+1, begunReady+1
		case told:
			begun++
		case !m.Ready:
			unready, passedOver = unready+1, passedOver+1
		}
	}
	if begun > 0 && begun+under > limit {
		t.Fatalf("%d under way and %d begun, limit %d", under, begun, limit)
	}
	if begunReady > 0 && begun+under+unready > limit {
		t.Fatalf("%d under way, %d begun and %d not ready, limit %d", under, begun, unready, limit)
	}
	if begunReady > 0 && passedOver > 0 {
		t.Fatalf("%d that are ready were begun before %d that aren't", begunReady, passedOver)
	}
	if begun > 0 && obs.Held != "" {
		t.Fatalf("%d begun although something holds", begun)
	}
	if plan.Complete && slices.ContainsFunc(obs.Machines, func(m Machine) bool { return !m.Leaving && !m.done("v2") }) {
		t.Fatal("complete too early")
	}
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
	now := noon
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

func TestSince(t *testing.T) {
	began := noon.Add(-time.Hour)
	note := func(when time.Time, what string) map[string]string {
		return map[string]string{desiredDrain: "drain-v2", drainStarted: when.Format(time.RFC3339) + " " + what}
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        time.Time
	}{
		"When a drain was noted it should have begun then":           {note(began, "drain-v2"), began},
		"When another drain was noted it should begin now":           {note(began, "drain-v1"), noon},
		"When the note is of the future it should begin now":         {note(noon.Add(time.Second), "drain-v2"), noon},
		"When nothing is noted it should begin now":                  {map[string]string{desiredDrain: "drain-v2"}, noon},
		"When the note is garbage it should begin now":               {map[string]string{desiredDrain: "drain-v2", drainStarted: "drain-v2"}, noon},
		"When a node asks for spaces its note should be its own yet": {map[string]string{desiredDrain: "drain-a b", drainStarted: began.Format(time.RFC3339) + " drain-a b"}, began},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(since(tc.annotations, noon)).To(BeTemporally("==", tc.want)) })
	}
}
