package phase

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/owner"
)

func set(uid string, controller bool) owner.Entry {
	return owner.Entry{APIVersion: "package-operator.run/v1alpha1", Kind: "ObjectSet", Name: uid, UID: types.UID(uid), Controller: controller}
}

func us(revision int64, siblings ...types.UID) Owner {
	o := Owner{Entry: set("us", false), Revision: revision, Siblings: map[types.UID]struct{}{}}
	for _, s := range siblings {
		o.Siblings[s] = struct{}{}
	}
	return o
}

func TestDecide(t *testing.T) {
	const prevent, free, none = v1alpha1.CollisionProtectionPrevent, v1alpha1.CollisionProtectionIfNoController, v1alpha1.CollisionProtectionNone
	for name, tc := range map[string]struct {
		facts   facts
		protect v1alpha1.CollisionProtection
		force   bool
		// local is for phases without a class, classed for the others.
		local, classed verdict
	}{
		"When we control it it should be kept":                                                                              {facts: facts{owners: []owner.Entry{set("us", true)}, revision: 9}, protect: prevent, local: keep, classed: keep},
		"When a previous revision controls it it should be adopted":                                                         {facts: facts{owners: []owner.Entry{set("old", true)}, revision: 1}, protect: prevent, local: adopt, classed: adopt},
		"When a later revision controls it it should be left":                                                               {facts: facts{owners: []owner.Entry{set("old", true), set("us", false)}, revision: 3}, protect: none, local: leave, classed: leave},
		"When a revision has the same number it should collide":                                                             {facts: facts{owners: []owner.Entry{set("old", true)}, revision: 2}, protect: prevent, local: collide, classed: collide},
		"When nobody controls it and we prevent it should collide":                                                          {protect: prevent, local: collide, classed: collide},
		"When nobody controls it and that is enough it should be adopted":                                                   {protect: free, local: adopt, classed: adopt},
		"When nobody controls it and all is allowed it should be adopted":                                                   {protect: none, local: adopt, classed: adopt},
		"When it was orphaned it should be adopted only without a class":                                                    {facts: facts{revision: 1}, protect: none, local: adopt, classed: collide},
		"When somebody controls it and we prevent it should collide":                                                        {facts: facts{owners: []owner.Entry{set("x", true)}}, protect: prevent, local: collide, classed: collide},
		"When somebody controls it and none may it should collide":                                                          {facts: facts{owners: []owner.Entry{set("x", true)}}, protect: free, local: collide, classed: collide},
		"When somebody controls it and all is allowed it should be adopted":                                                 {facts: facts{owners: []owner.Entry{set("x", true)}}, protect: none, local: adopt, classed: adopt},
		"When adoption is forced it should be adopted":                                                                      {facts: facts{owners: []owner.Entry{set("x", true)}}, protect: prevent, force: true, local: adopt, classed: adopt},
		"When it is of our own package it should be adopted":                                                                {facts: facts{ourPackage: true}, protect: prevent, local: adopt, classed: adopt},
		"When a newer revision that is not known yet controls it it should be left":                                         {facts: facts{owners: []owner.Entry{set("new", true)}, revision: 3, newer: true}, protect: none, local: leave, classed: leave},
		"When a stranger with a higher number controls it it should collide":                                                {facts: facts{owners: []owner.Entry{set("x", true)}, revision: 3}, protect: prevent, local: collide, classed: collide},
		"When a stranger with a higher number controls it and all is allowed it should be adopted":                          {facts: facts{owners: []owner.Entry{set("x", true)}, revision: 3}, protect: none, local: adopt, classed: adopt},
		"When nobody controls what a higher number wrote it should be left without a class":                                 {facts: facts{revision: 3}, protect: none, local: leave, classed: collide},
		"When an installation that is gone left it behind it should go by the protection, and collide":                      {facts: facts{revision: 3, unowned: true, leftover: true}, protect: prevent, local: collide, classed: collide},
		"When an installation that is gone left it behind and no controller is enough it should be adopted without a class": {facts: facts{revision: 3, unowned: true, leftover: true}, protect: free, local: adopt, classed: collide},
		"When an installation that is gone left it behind and all is allowed it should be adopted without a class":          {facts: facts{revision: 3, unowned: true, leftover: true}, protect: none, local: adopt, classed: collide},
		"When a newer revision may come back for what nobody controls it should be left without a class":                    {facts: facts{revision: 3, unowned: true}, protect: free, local: leave, classed: collide},
		"When the protection is unknown it should prevent":                                                                  {protect: "Sometimes", local: collide, classed: collide},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			local, _ := Unclassed().decide(us(2, "old"), tc.force, tc.protect, tc.facts)
			g.Expect(local).To(Equal(tc.local), "without a class")
			classed, why := SameCluster().decide(us(2, "old"), tc.force, tc.protect, tc.facts)
			g.Expect(classed).To(Equal(tc.classed), "with a class")
			g.Expect(why == "").To(Equal(classed != collide))
		})
	}
	t.Run("When we prevent it should never adopt what no revision of ours controls", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			var owners []owner.Entry
			for i, uid := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"us", "old", "x", "y"}), rapid.ID[string]).Draw(rt, "owners") {
				owners = append(owners, set(uid, i == 0 && rapid.Bool().Draw(rt, "controlled")))
			}
			f := facts{owners: owners, revision: int64(rapid.IntRange(0, 4).Draw(rt, "revision")), leftover: len(owners) == 0 && rapid.Bool().Draw(rt, "leftover")}
			rules := rapid.SampledFrom([]Rules{Unclassed(), SameCluster(), OtherCluster()}).Draw(rt, "rules")
			v, _ := rules.decide(us(2, "old"), false, v1alpha1.CollisionProtectionPrevent, f)
			c := owner.Controller(owners)
			if v == adopt && (c == nil || c.UID != "old" || f.revision >= 2) {
				rt.Fatalf("adopts %+v", f)
			}
			if v == keep && (c == nil || c.UID != "us") {
				rt.Fatalf("keeps %+v", f)
			}
		})
	})
}

func TestUnowned(t *testing.T) {
	entry := func(kind string, controller bool) owner.Entry {
		return owner.Entry{APIVersion: "package-operator.run/v1alpha1", Kind: kind, Name: "x", UID: "x", Controller: controller}
	}
	configMap := owner.Entry{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	for name, tc := range map[string]struct {
		owners []owner.Entry
		// elsewhere are those that the annotation tells of.
		elsewhere []owner.Entry
		want      bool
	}{
		"When there are no owners it should be unowned":                             {want: true},
		"When something that is no revision owns it, too, it should be":             {owners: []owner.Entry{configMap}, want: true},
		"When a revision is still an owner it should not be":                        {owners: []owner.Entry{configMap, entry("ObjectSet", false)}},
		"When a phase of a revision is still an owner it should not be":             {owners: []owner.Entry{entry("ObjectSetPhase", false)}},
		"When a revision for the whole cluster is still an owner it should not be":  {owners: []owner.Entry{entry("ClusterObjectSet", false)}},
		"When a phase of such a revision is still an owner it should not be":        {owners: []owner.Entry{entry("ClusterObjectSetPhase", false)}},
		"When an ObjectTemplate controls it it should not be":                       {owners: []owner.Entry{entry("ObjectTemplate", true)}},
		"When a revision of another cluster owns it it should not be":               {elsewhere: []owner.Entry{entry("ObjectSetPhase", true)}},
		"When the annotation of another cluster names nobody any more it should be": {elsewhere: []owner.Entry{}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, obj := NewWithT(t), &unstructured.Unstructured{Object: map[string]any{}}
			g.Expect(owner.References{}.Write(obj, tc.owners)).To(Succeed())
			if tc.elsewhere != nil {
				g.Expect(owner.Annotation{}.Write(obj, tc.elsewhere)).To(Succeed())
			}
			f, err := Unclassed().factsOf(obj)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.unowned).To(Equal(tc.want))
		})
	}
}

func TestAdopt(t *testing.T) {
	t.Run("When an owner adopts it should be the only controller, and no owner should be lost", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			var owners []owner.Entry
			for i, uid := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"us", "a", "b", "c"}), rapid.ID[string]).Draw(rt, "owners") {
				owners = append(owners, set(uid, i == 0))
			}
			out := owner.Adopt(owners, set("us", false))
			controllers := 0
			for _, e := range out {
				if e.Controller {
					controllers++
				}
			}
			g := NewWithT(rt)
			g.Expect(controllers).To(Equal(1))
			g.Expect(owner.Controller(out).UID).To(Equal(types.UID("us")))
			for _, e := range owners {
				g.Expect(owner.Has(out, e)).To(BeTrue())
			}
			// Both strategies read what they wrote.
			for _, s := range []owner.Strategy{owner.References{}, owner.Annotation{}} {
				obj := &unstructured.Unstructured{Object: map[string]any{}}
				g.Expect(s.Write(obj, out)).To(Succeed())
				back, err := s.Read(obj)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(len(back)).To(Equal(len(out)))
				for i := range back {
					g.Expect(back[i].Same(out[i])).To(BeTrue())
					g.Expect(back[i].Controller).To(Equal(out[i].Controller))
				}
			}
		})
	})
}

func FuzzOwners(f *testing.F) {
	f.Add(`[{"apiVersion":"a/v1","kind":"K","name":"n","uid":"u","controller":true}]`)
	f.Add(`[]`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, text string) {
		obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.OwnersAnnotation: text}}}
		owners, err := owner.Annotation{}.Read(obj)
		if err != nil {
			return
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		if err := (owner.Annotation{}).Write(u, owners); err != nil {
			t.Fatal(err)
		}
	})
}

func TestContains(t *testing.T) {
	m := func(kv ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i].(string)] = kv[i+1]
		}
		return out
	}
	for name, tc := range map[string]struct {
		have, want map[string]any
		out        bool
	}{
		"When others add a field it should be intact":          {m("a", "1", "b", "2"), m("a", "1"), true},
		"When a value differs it should not":                   {m("a", "1"), m("a", "2"), false},
		"When a field is gone it should not":                   {m(), m("a", "1"), false},
		"When an empty struct is gone it should be intact":     {m(), m("a", m()), true},
		"When a whole number is spelled as float it should be": {m("a", int64(1)), m("a", float64(1)), true},
		"When others inject an item it should be intact":       {m("a", []any{m("n", "x"), m("n", "y")}), m("a", []any{m("n", "y")}), true},
		"When an item of ours is gone it should not":           {m("a", []any{m("n", "x")}), m("a", []any{m("n", "y")}), false},
		"When nothing is wanted it should be intact":           {m("a", "1"), m("a", nil), true},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(contains(tc.have, tc.want)).To(Equal(tc.out)) })
	}
}

func TestCondition(t *testing.T) {
	t.Run("When parts come from anywhere it should be one that the API server takes", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			c := Condition("x/Y", metav1.ConditionStatus(rapid.String().Draw(rt, "status")), rapid.String().Draw(rt, "reason"),
				strings.Repeat(rapid.String().Draw(rt, "message"), rapid.IntRange(0, 20000).Draw(rt, "times")))
			if len(c.Message) > maxMessage || !reasonPattern.MatchString(c.Reason) || (c.Status != "True" && c.Status != "False" && c.Status != "Unknown") {
				rt.Fatal(fmt.Sprintf("%.200v", c))
			}
		})
	})
}
