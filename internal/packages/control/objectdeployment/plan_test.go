package objectdeployment

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"hcp.internal/api/packages/v1alpha1"
)

type change func(*v1alpha1.ObjectSet)

func rev(n int64, changes ...change) *v1alpha1.ObjectSet {
	os := &v1alpha1.ObjectSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", n), Annotations: map[string]string{v1alpha1.HashAnnotation: fmt.Sprint(n)},
			OwnerReferences: []metav1.OwnerReference{{UID: "web", Controller: ptr.To(true)}},
		},
		Spec: v1alpha1.ObjectSetSpec{Revision: n, LifecycleState: v1alpha1.LifecycleStateActive},
	}
	for _, c := range changes {
		c(os)
	}
	return os
}

func is(conditionType string, status metav1.ConditionStatus) change {
	return func(os *v1alpha1.ObjectSet) {
		os.Status.Conditions = append(os.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, Message: "why"})
	}
}

func does(state v1alpha1.LifecycleState) change {
	return func(os *v1alpha1.ObjectSet) { os.Spec.LifecycleState = state }
}

// resumed is another generation than the one that conditions are about.
func resumed(os *v1alpha1.ObjectSet) { os.Generation++ }

func controls(names ...string) change {
	return func(os *v1alpha1.ObjectSet) {
		for _, n := range names {
			os.Status.ControllerOf = append(os.Status.ControllerOf, v1alpha1.ControlledObjectReference{Kind: "ConfigMap", Name: n})
		}
	}
}

func wants(class string, names ...string) change {
	return func(os *v1alpha1.ObjectSet) {
		p := v1alpha1.ObjectSetTemplatePhase{Name: "a", Class: class}
		for _, n := range names {
			o := v1alpha1.ObjectSetObject{}
			o.Object.SetUnstructuredContent(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": n}})
			p.Objects = append(p.Objects, o)
		}
		os.Spec.Phases = append(os.Spec.Phases, p)
	}
}

func deployment(hash string, sets ...*v1alpha1.ObjectSet) observed {
	d := &v1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: types.UID("web")}}
	d.Spec.Template.Spec.Phases = []v1alpha1.ObjectSetTemplatePhase{{Name: "a"}}
	return observed{deployment: d, kind: "ObjectDeployment", hash: hash, sets: sets}
}

func states(p plan) []string {
	var out []string
	for _, l := range p.lifecycle {
		out = append(out, fmt.Sprintf("%d %s", l.set.Spec.Revision, l.state))
	}
	return out
}

func TestPlan(t *testing.T) {
	yes, no := is("Available", "True"), is("Available", "False")
	for name, tc := range map[string]struct {
		obs    observed
		states []string
		create int64
		remove int
	}{
		"When there is no revision it should make the first":            {obs: deployment("1"), create: 1},
		"When the template is new it should make the next":              {obs: deployment("3", rev(1), rev(2)), create: 3},
		"When the template is an old one it should make a new revision": {obs: deployment("1", rev(1), rev(2)), create: 3},
		"When the revision is there it should do nothing":               {obs: deployment("2", rev(1), rev(2))},
		"When a number is still to be set it should wait":               {obs: deployment("3", rev(0), rev(2))},
		"When the newest is available it should archive the older":      {obs: deployment("3", rev(1, yes), rev(2, no), rev(3, yes)), states: []string{"1 Archived", "2 Archived"}},
		"When the newest wants nothing of a broken one it should archive it": {
			obs: deployment("3", rev(1, yes), rev(2, no, controls("x")), rev(3, no, wants("", "y"))), states: []string{"2 Archived"}},
		"When the newest wants something of a broken one it should keep it": {obs: deployment("2", rev(1, no, controls("x")), rev(2, no, wants("", "x")))},
		"When a broken one has not reported it should keep it":              {obs: deployment("2", rev(1, no), rev(2, no, wants("", "x")))},
		"When an old one has phases of a class it should pause it first":    {obs: deployment("2", rev(1, yes, wants("default")), rev(2, yes)), states: []string{"1 Paused"}},
		"When that one is paused it should archive it":                      {obs: deployment("2", rev(1, yes, wants("default"), does("Paused"), is("Paused", "True")), rev(2, yes)), states: []string{"1 Archived"}},
		"When it was paused and goes on it should pause it again first": {
			obs: deployment("2", rev(1, yes, wants("default"), is("Paused", "True"), resumed), rev(2, yes)), states: []string{"1 Paused"}},
		"When that one is not quite paused it should wait":               {obs: deployment("2", rev(1, yes, wants("default"), does("Paused"), is("Paused", "Unknown")), rev(2, yes))},
		"When more are archived than wanted it should remove the oldest": {obs: limited(1, rev(1, does("Archived"), is("Archived", "True")), rev(2, does("Archived"), is("Archived", "True")), rev(3, yes)), remove: 1},
		"When an old one has not given up its objects it should be kept": {obs: limited(0, rev(1, does("Archived"), is("Archived", "False")), rev(2, yes))},
		"When it is paused it should pause revisions and make none":      {obs: paused(deployment("9", rev(1, does("Archived")), rev(2))), states: []string{"2 Paused"}},
		"When it goes on it should resume what it paused":                {obs: deployment("2", rev(1, does("Paused")), rev(2, does("Paused"), byParent)), states: []string{"2 Active"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			p := planFor(tc.obs)
			g.Expect(states(p)).To(Equal(tc.states))
			g.Expect(p.remove).To(HaveLen(tc.remove))
			if tc.create == 0 {
				g.Expect(p.create).To(BeNil())
				return
			}
			g.Expect(p.create).NotTo(BeNil())
			g.Expect(p.create.Spec.Revision).To(Equal(tc.create))
			g.Expect(p.create.Spec.Previous).To(HaveLen(len(tc.obs.sets)))
		})
	}
}

func byParent(os *v1alpha1.ObjectSet) { os.Annotations[v1alpha1.PausedByParentAnnotation] = "true" }

func limited(limit int32, sets ...*v1alpha1.ObjectSet) observed {
	obs := deployment(fmt.Sprint(sets[len(sets)-1].Spec.Revision), sets...)
	obs.deployment.Spec.RevisionHistoryLimit = ptr.To(limit)
	return obs
}

func paused(obs observed) observed {
	obs.deployment.Spec.Paused = true
	return obs
}

// TestServing: whatever the revisions say, one that is available stays unless a newer one is available, too, and what does not belong to the
// deployment or holds objects is never removed.
func TestServing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var sets []*v1alpha1.ObjectSet
		n := rapid.IntRange(1, 6).Draw(rt, "revisions")
		for i := range n {
			os := rev(int64(i+1), does(rapid.SampledFrom([]v1alpha1.LifecycleState{"Active", "Paused", "Archived"}).Draw(rt, "state")))
			for _, c := range []string{"Available", "Archived", "Paused"} {
				if s := rapid.SampledFrom([]metav1.ConditionStatus{"", "True", "False", "Unknown"}).Draw(rt, c); s != "" {
					is(c, s)(os)
				}
			}
			names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.ID[string])
			controls(names.Draw(rt, "controls")...)(os)
			wants(rapid.SampledFrom([]string{"", "default"}).Draw(rt, "class"), names.Draw(rt, "wants")...)(os)
			if rapid.Bool().Draw(rt, "orphan") {
				os.OwnerReferences = nil
			}
			sets = append(sets, os)
		}
		obs := limited(int32(rapid.IntRange(0, 3).Draw(rt, "limit")), sets...)
		obs.deployment.Spec.Paused = rapid.Bool().Draw(rt, "paused")
		p := planFor(obs)
		for _, l := range p.lifecycle {
			newerServes := slices.ContainsFunc(sets, func(os *v1alpha1.ObjectSet) bool { return os.Spec.Revision > l.set.Spec.Revision && available(os) })
			if l.state == v1alpha1.LifecycleStateArchived && available(l.set) && !newerServes {
				rt.Fatalf("archives revision %d, which serves", l.set.Spec.Revision)
			}
			if l.set.Spec.LifecycleState == v1alpha1.LifecycleStateArchived {
				rt.Fatalf("brings revision %d back", l.set.Spec.Revision)
			}
		}
		for _, os := range p.remove {
			if len(os.OwnerReferences) == 0 || os == sets[n-1] {
				rt.Fatalf("removes revision %d", os.Spec.Revision)
			}
		}
		if obs.deployment.Spec.Paused && (p.create != nil || len(p.remove) > 0) {
			rt.Fatal("works while paused")
		}
	})
}
