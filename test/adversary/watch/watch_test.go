package watch

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
)

// TestLedger plays a server that loses answers, and one that loses writes.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, l := NewWithT(t), &Ledger{}
		stored, acked := map[string]int{}, map[string]int{}
		for range rapid.IntRange(1, 50).Draw(t, "writes") {
			key := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "key"))
			value := l.Next(key)
			l.Try(key, value)
			if rapid.Bool().Draw(t, "carried out") {
				stored[key] = value
				if rapid.Bool().Draw(t, "answered") {
					l.Acked(key, value)
					acked[key] = value
				}
			}
		}
		for _, key := range []string{"0", "1", "2", "3"} {
			value, found := stored[key]
			g.Expect(l.Check(key, value, found)).To(Succeed(), "When nothing that was acknowledged is lost it should be content")
			if acked[key] > 0 {
				g.Expect(l.Check(key, 0, false)).NotTo(Succeed(), "When it is lost it should say so")
				g.Expect(l.Check(key, acked[key]-1, true)).NotTo(Succeed(), "When an older value is back it should say so")
				g.Expect(l.Keys()).To(ContainElement(key))
			}
			g.Expect(l.Check(key, l.Next(key), true)).NotTo(Succeed(), "When there is what nobody wrote it should say so")
		}
	})
}

func seen(namespace, tag string, available metav1.ConditionStatus, generation, observed int64) *v1alpha1.Package {
	raw, _ := json.Marshal(map[string]string{"tag": tag})
	return &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Generation: generation}, Spec: v1alpha1.PackageSpec{Config: &runtime.RawExtension{Raw: raw}},
		Status: v1alpha1.PackageStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: available, ObservedGeneration: observed}}}}
}

func TestBudget(t *testing.T) {
	type event struct {
		at time.Duration
		p  *v1alpha1.Package
	}
	up := func(at time.Duration, ns, tag string, generation int64) event {
		return event{at, seen(ns, tag, metav1.ConditionTrue, generation, generation)}
	}
	changed := func(at time.Duration, ns, tag string, generation int64) event {
		return event{at, seen(ns, tag, metav1.ConditionTrue, generation, generation-1)}
	}
	down := func(at time.Duration, ns, tag string, generation int64) event {
		return event{at, seen(ns, tag, metav1.ConditionFalse, generation, generation)}
	}
	const s = time.Second
	for name, tc := range map[string]struct {
		events  []event
		leaving string
		want    string
	}{
		"When one is changed after the other it should be content": {
			events: []event{up(0, "a", "1", 1), up(0, "b", "1", 1), changed(1*s, "a", "2", 2), up(9*s, "a", "2", 2), changed(10*s, "b", "2", 2)},
		},
		"When the second is changed before the first is heard of it should say so": {
			events: []event{up(0, "a", "1", 1), up(0, "b", "1", 1), changed(1*s, "a", "2", 2), changed(10*s, "b", "2", 2)},
			want:   "the Package in b was up and was changed while 1 others were down, of 1: [a for 9s]",
		},
		"When both are changed in the same moment it should say so": {
			events: []event{up(0, "a", "1", 1), up(0, "b", "1", 1), changed(1*s, "a", "2", 2), changed(1*s, "b", "2", 2)},
			want:   "the Package in b was up and was changed while 1 others were down, of 1: [a for 0s]",
		},
		"When one that was changed is heard to be down it should still count at once": {
			events: []event{up(0, "a", "1", 1), up(0, "b", "1", 1), changed(1*s, "a", "2", 2), down(2*s, "a", "2", 2), changed(3*s, "b", "2", 2)},
			want:   "[a for 2s]",
		},
		"When one is down and another is changed it should say so": {
			events: []event{up(0, "a", "1", 1), down(0, "b", "1", 1), changed(10*s, "a", "2", 2)},
			want:   "the Package in a was up",
		},
		"When one that is down is changed it should be content": {
			events: []event{down(0, "a", "1", 1), down(0, "b", "1", 1), changed(10*s, "a", "2", 2)},
		},
		"When another breaks in the same moment it should be content": {
			events: []event{up(0, "a", "1", 1), up(0, "b", "1", 1), down(9*s, "b", "1", 1), changed(10*s, "a", "2", 2)},
		},
		"When the one that is down is being destroyed it should be content": {
			events: []event{up(0, "a", "1", 1), down(0, "b", "1", 1), changed(10*s, "a", "2", 2)}, leaving: "b",
		},
		"When it is down again and again it should count from the first time": {
			events: []event{up(0, "a", "1", 1), down(0, "b", "1", 1), down(9*s, "b", "1", 1), changed(10*s, "a", "2", 2)},
			want:   "[b for 10s]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin, wrong := time.Unix(0, 0), ""
			b := &Budget{Max: 1, Leaving: func(ns string) bool { return ns == tc.leaving }}
			for _, e := range tc.events {
				wrong += b.see(e.p, begin.Add(e.at))
			}
			if tc.want == "" {
				NewWithT(t).Expect(wrong).To(BeEmpty())
			}
			NewWithT(t).Expect(wrong).To(ContainSubstring(tc.want))
		})
	}
}

func TestMine(t *testing.T) {
	g := NewWithT(t)
	for _, of := range [][2]string{{"adversary", "hosted1"}, {"adversary-hosted1", "etcd-0"}, {"", "adversary-tenant"}, {"clusters-demo", "adversary-fleet"}} {
		g.Expect(mine(of[0], of[1])).To(BeTrue(), "%v", of)
	}
	for _, of := range [][2]string{{"clusters", "demo"}, {"kube-system", "coredns"}, {"", "hypershift"}} {
		g.Expect(mine(of[0], of[1])).To(BeFalse(), "%v", of)
	}
}

func TestMachine(t *testing.T) {
	g := NewWithT(t)
	before := Machine{"mounts": {"/", "/a"}, "links": {"lo"}}
	g.Expect(Machine{"mounts": {"/", "/b"}, "links": nil}.More(before)).To(BeEmpty(), "When one has come for another nothing is left")
	g.Expect(Machine{"mounts": {"/", "/b", "/c"}, "links": {"lo", "veth1"}}.More(before)).To(Equal("there were 1 links, there are 2: veth1; there were 2 mounts, there are 3: /b; /c"))
	g.Expect(before.Counts()).To(Equal(map[string]int{"mounts": 2, "links": 1}))
}

func TestOpens(t *testing.T) {
	rules := nonEmpty([]byte("table ip kube-proxy {\n\tchain service-gone {\n\t}\n\n\tchain service-there {\n\t\tip daddr 10.96.0.1 accept\n\t}\n}\n"))
	NewWithT(t).Expect(slices.DeleteFunc(rules, opens)).To(Equal([]string{"ip daddr 10.96.0.1 accept"}), "When a chain is empty it should count as gone")
}

func TestOrphans(t *testing.T) {
	pod := func(name, node string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	}
	nodes := []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	NewWithT(t).Expect(orphans([]corev1.Pod{pod("runs", "a"), pod("waits", ""), pod("left", "b")}, nodes)).To(Equal([]string{"Pod kube-system/left of node b, which is gone"}))
}

func TestPoolRests(t *testing.T) {
	pool := func(status corev1.ConditionStatus, observed int64) *hyperv1.NodePool {
		p := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 2}}
		p.Status.Conditions = []hyperv1.NodePoolCondition{{Type: hyperv1.NodePoolUpdatingConfigConditionType, Status: status, Message: "1 of 2", ObservedGeneration: observed}}
		return p
	}
	g := NewWithT(t)
	g.Expect(poolRests(pool(corev1.ConditionFalse, 2))).To(Succeed())
	g.Expect(poolRests(pool(corev1.ConditionTrue, 2))).To(MatchError("NodePool p rolls: 1 of 2"))
	g.Expect(poolRests(pool(corev1.ConditionFalse, 1))).To(MatchError("nobody has said whether generation 2 of NodePool p rolls"), "When it was changed since it should not believe what was said before")
}

func TestPodRuns(t *testing.T) {
	now := metav1.Now()
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		runs bool
	}{
		"When a pod is ready it should run":                           {corev1.Pod{Status: corev1.PodStatus{Conditions: ready}}, true},
		"When a pod has ended well it should count as running":        {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, true},
		"When a container waits to be started again it should not":    {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, false},
		"When a pod that is ready is being deleted it should not":     {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: corev1.PodStatus{Conditions: ready}}, false},
		"When a pod has ended badly it should, as nothing of it runs": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, true},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(podRuns(&tc.pod) == nil).To(Equal(tc.runs)) })
	}
}
