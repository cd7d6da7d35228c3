package manager_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

// quiet is how long a test watches that something does not happen.
const quiet = 1500 * time.Millisecond

func available(os *v1alpha1.ObjectSet) func() error {
	return HasCondition(os, &os.Status.Conditions, "Available", "True", "Available", "Object is available and passes all probes.")
}

func configMap(ns, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

func get(w *World, t *testing.T, obj client.Object) error {
	return w.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
}

func TestPhasesAreGated(t *testing.T) {
	t.Run("When a probe fails it should not begin the next phase, and when it passes it should succeed", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		os := ObjectSet(ns, "gated", 1, Phase("one", ConfigMap("first", nil, "name", "nope")), Phase("two", ConfigMap("second", nil, "name", "second")))
		os.Spec.AvailabilityProbes = []v1alpha1.ObjectSetProbe{Probe("ConfigMap", ".metadata.name", ".metadata.annotations.name")}
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Available", "False", "ProbeFailure",
			fmt.Sprintf(`Phase "one" failed:  ConfigMap %s/first: ".metadata.name" != ".metadata.annotations.name" expected: "first" got: "nope"`, ns)))
		g.Expect(HasCondition(os, &os.Status.Conditions, "InTransition", "True", "InTransition",
			"ObjectSet is still rolling out or is being replaced by a newer version.")()).To(Succeed())
		g.Expect(get(w, t, configMap(ns, "second"))).NotTo(Succeed())
		g.Expect(os.Finalizers).To(ConsistOf("package-operator.run/cached", "package-operator.run/metrics"))

		g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
		w.Gone(t, os)
		w.Gone(t, configMap(ns, "first"))
		os = ObjectSet(ns, "gated", 1, Phase("one", ConfigMap("first", nil, "name", "first")), Phase("two", ConfigMap("second", nil, "name", "second")))
		os.Spec.AvailabilityProbes = []v1alpha1.ObjectSetProbe{Probe("ConfigMap", ".metadata.name", ".metadata.annotations.name")}
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os))
		g.Expect(meta.IsStatusConditionTrue(os.Status.Conditions, "Succeeded")).To(BeTrue())
		g.Expect(meta.FindStatusCondition(os.Status.Conditions, "InTransition")).To(BeNil())
		g.Expect(os.Status.ControllerOf).To(ConsistOf(
			v1alpha1.ControlledObjectReference{Kind: "ConfigMap", Name: "first", Namespace: ns},
			v1alpha1.ControlledObjectReference{Kind: "ConfigMap", Name: "second", Namespace: ns}))
		g.Expect(os.Status.Revision).To(Equal(int64(1)))
	})
}

// each runs a test for phases without a class and with the default one.
func each(t *testing.T, test func(t *testing.T, class string)) {
	for name, class := range map[string]string{"without a class": "", "of class default": "default"} {
		t.Run("phase "+name, func(t *testing.T) {
			t.Parallel()
			test(t, class)
		})
	}
}

// inNamespace names the namespace in the object, which phases with a class demand.
func inNamespace(ns string, obj v1alpha1.ObjectSetObject) v1alpha1.ObjectSetObject {
	obj.Object.SetNamespace(ns)
	return obj
}

func classed(class string, p v1alpha1.ObjectSetTemplatePhase) v1alpha1.ObjectSetTemplatePhase {
	p.Class = class
	return p
}

func TestPause(t *testing.T) {
	each(t, func(t *testing.T, class string) {
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		os := ObjectSet(ns, "set", 1, classed(class, Phase("a", inNamespace(ns, ConfigMap("cm", map[string]any{"v": "ours"})))))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os))
		cm := configMap(ns, "cm")
		change := func() {
			g.Expect(get(w, t, cm)).To(Succeed())
			cm.Data["v"] = "theirs"
			g.Expect(w.Client.Update(t.Context(), cm, client.FieldOwner("somebody"))).To(Succeed())
		}
		is := func(value string) func() error {
			return func() error {
				if cm.Data["v"] != value {
					return fmt.Errorf("value is %s, want %s", cm.Data["v"], value)
				}
				return nil
			}
		}
		change()
		w.Eventually(t, cm, is("ours"))

		lifecycle := func(state v1alpha1.LifecycleState) {
			g.Expect(w.Client.Patch(t.Context(), os, client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"spec":{"lifecycleState":%q}}`, state))))).To(Succeed())
		}
		lifecycle(v1alpha1.LifecycleStatePaused)
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Paused", "True", "Paused", "Lifecycle state set to paused."))
		change()
		g.Consistently(func() string { _ = get(w, t, cm); return cm.Data["v"] }, quiet).Should(Equal("theirs"))
		lifecycle(v1alpha1.LifecycleStateActive)
		w.Eventually(t, cm, is("ours"))
		w.Eventually(t, os, func() error {
			if meta.FindStatusCondition(os.Status.Conditions, "Paused") != nil {
				return errors.New("still paused")
			}
			return available(os)()
		})
	})
}

func TestTeardown(t *testing.T) {
	each(t, func(t *testing.T, class string) {
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		os := ObjectSet(ns, "set", 1,
			classed(class, Phase("one", inNamespace(ns, ConfigMap("first", nil)))), classed(class, Phase("two", inNamespace(ns, ConfigMap("second", nil)))))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os))
		first, second := configMap(ns, "first"), configMap(ns, "second")
		g.Expect(w.Client.Patch(t.Context(), second, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["test.example/hold"]}}`)))).To(Succeed())
		g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
		w.Eventually(t, second, func() error {
			if second.DeletionTimestamp == nil {
				return errors.New("not deleted")
			}
			return nil
		})
		g.Consistently(func() bool { return get(w, t, first) == nil && first.DeletionTimestamp == nil }, quiet).Should(BeTrue(), "the first phase waits for the second")
		g.Expect(w.Client.Patch(t.Context(), second, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		w.Gone(t, os)
		g.Expect(get(w, t, first)).NotTo(Succeed())
	})
}

func TestDeletionThatWaits(t *testing.T) {
	t.Run("When a deletion waits for an object it should say for which, and go on once that is gone", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		os := ObjectSet(ns, "set", 1, Phase("one", ConfigMap("first", nil)))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os))
		first := configMap(ns, "first")
		g.Expect(w.Client.Patch(t.Context(), first, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["test.example/hold"]}}`)))).To(Succeed())
		g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Deleting", "True", "WaitingForObjects",
			fmt.Sprintf(`Phase "one" waits until %s/first are gone: look at their finalizers, and who should remove these.`, ns)))
		g.Expect(w.Client.Patch(t.Context(), first, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		w.Gone(t, os)
	})
}

func TestOrphan(t *testing.T) {
	each(t, func(t *testing.T, class string) {
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		os := ObjectSet(ns, "set", 1, classed(class, Phase("one", inNamespace(ns, ConfigMap("cm", nil)))))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os))
		g.Expect(w.Client.Delete(t.Context(), os, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		w.Gone(t, os)
		cm := configMap(ns, "cm")
		g.Consistently(func() error { return get(w, t, cm) }, quiet).Should(Succeed())
	})
}

func TestHandover(t *testing.T) {
	each(t, func(t *testing.T, class string) {
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		one := ObjectSet(ns, "one", 1, classed(class, Phase("a", inNamespace(ns, ConfigMap("shared", map[string]any{"v": "1"})), inNamespace(ns, ConfigMap("old", nil)))))
		g.Expect(w.Client.Create(t.Context(), one)).To(Succeed())
		w.Eventually(t, one, available(one))
		two := ObjectSet(ns, "two", 2, classed(class, Phase("a", inNamespace(ns, ConfigMap("shared", map[string]any{"v": "2"})), inNamespace(ns, ConfigMap("new", nil)))))
		two.Spec.Previous = []v1alpha1.PreviousRevisionReference{{Name: "one"}, {Name: "never-was"}}
		g.Expect(w.Client.Create(t.Context(), two)).To(Succeed())
		w.Eventually(t, two, available(two))
		shared := configMap(ns, "shared")
		g.Expect(get(w, t, shared)).To(Succeed())
		g.Expect(shared.Data).To(HaveKeyWithValue("v", "2"))
		g.Expect(shared.Annotations).To(HaveKeyWithValue("package-operator.run/revision", "2"))
		g.Expect(shared.OwnerReferences).To(HaveLen(2))
		g.Expect(metav1.GetControllerOf(shared).Name).To(HavePrefix("two"))
		w.Eventually(t, one, HasCondition(one, &one.Status.Conditions, "InTransition", "True", "InTransition", ""))

		g.Expect(w.Client.Patch(t.Context(), one, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"lifecycleState":"Archived"}}`)))).To(Succeed())
		w.Eventually(t, one, HasCondition(one, &one.Status.Conditions, "Archived", "True", "Archived", ""))
		g.Expect(one.Status.ControllerOf).To(BeEmpty())
		g.Expect(meta.FindStatusCondition(one.Status.Conditions, "Available")).To(BeNil())
		g.Expect(get(w, t, configMap(ns, "old"))).NotTo(Succeed())
		g.Expect(get(w, t, shared)).To(Succeed())
		g.Expect(shared.OwnerReferences).To(HaveLen(1))
		g.Expect(shared.Labels).To(HaveKeyWithValue("package-operator.run/cache", "True"))
		version := shared.ResourceVersion
		g.Consistently(func() string { _ = get(w, t, shared); return shared.ResourceVersion }, quiet).Should(Equal(version), "nobody writes it again")
	})
}

func TestCollisions(t *testing.T) {
	for _, protection := range []v1alpha1.CollisionProtection{"Prevent", "IfNoController", "None", "Sometimes"} {
		for _, controlled := range []bool{false, true} {
			adopts := protection == "None" || (protection == "IfNoController" && !controlled)
			name := fmt.Sprintf("When an object with a controller=%v is there and protection is %s it should adopt=%v", controlled, protection, adopts)
			t.Run(name, func(t *testing.T) {
				each(t, func(t *testing.T, class string) {
					g, w := NewWithT(t), Start(t)
					ns := w.Namespace(t)
					owner, cm := configMap(ns, "owner"), configMap(ns, "cm")
					g.Expect(w.Client.Create(t.Context(), owner)).To(Succeed())
					cm.Data = map[string]string{"theirs": "x"}
					if controlled {
						yes := true
						cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes}}
					}
					g.Expect(w.Client.Create(t.Context(), cm)).To(Succeed())
					version := cm.ResourceVersion
					obj := inNamespace(ns, ConfigMap("cm", map[string]any{"ours": "y"}))
					obj.CollisionProtection = protection
					os := ObjectSet(ns, "set", 1, classed(class, Phase("a", inNamespace(ns, ConfigMap("other", nil)), obj)))
					g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
					if adopts {
						w.Eventually(t, os, available(os))
						g.Expect(get(w, t, cm)).To(Succeed())
						g.Expect(cm.Data).To(And(HaveKey("theirs"), HaveKey("ours")))
						g.Expect(metav1.GetControllerOf(cm).Name).To(HavePrefix("set"))
						return
					}
					if class == "" {
						w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Available", "False", "CollisionDetected",
							fmt.Sprintf("object %[1]s/cm kind:ConfigMap: refusing adoption, object /v1, Kind=ConfigMap %[1]s/cm not owned by previous revision", ns)))
						g.Expect(get(w, t, configMap(ns, "other"))).NotTo(Succeed(), "nothing is created beside a collision")
					} else {
						w.Eventually(t, os, func() error {
							c := meta.FindStatusCondition(os.Status.Conditions, "Available")
							if c == nil || c.Reason != "ProbeFailure" || !strings.Contains(c.Message, `Action: "Collision"`) {
								return fmt.Errorf("condition is %v", c)
							}
							return nil
						})
					}
					g.Expect(get(w, t, cm)).To(Succeed())
					g.Expect(cm.ResourceVersion).To(Equal(version), "it is not touched")
					g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
					w.Gone(t, os)
					g.Expect(get(w, t, cm)).To(Succeed())
					g.Expect(cm.ResourceVersion).To(Equal(version))
				})
			})
		}
	}
}

func TestPreflight(t *testing.T) {
	role := func() v1alpha1.ObjectSetObject {
		return Object(map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "preflight-admin"}})
	}
	owned := ConfigMap("owned", nil)
	owned.Object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1"}})
	for name, tc := range map[string]struct {
		obj  v1alpha1.ObjectSetObject
		want string
	}{
		"When a kind is cluster-scoped it should refuse it": {role(), `Phase "a", ClusterRole /preflight-admin: Must be namespaced scoped when part of an non-cluster-scoped API.`},
		"When a kind is cluster-scoped and names a namespace it should refuse it, too": {
			inNamespace("default", role()), "Must stay within the same namespace., Must be namespaced scoped"},
		"When another namespace is named it should refuse it":     {inNamespace("kube-system", ConfigMap("x", nil)), `Phase "a", ConfigMap kube-system/x: Must stay within the same namespace.`},
		"When an owner is named it should refuse it":              {owned, "Object must not have a owner reference."},
		"When a kind is unknown it should refuse it":              {Object(map[string]any{"apiVersion": "no.example/v1", "kind": "Nothing", "metadata": map[string]any{"name": "x"}}), "no.example/v1, Kind=Nothing not registered on the api server."},
		"When a field is unknown it should refuse it":             {Object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "nope": int64(1)}), "failed to create typed patch object"},
		"When a value is invalid it should refuse it":             {Object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "Not A Name"}}), "Invalid value"},
		"When an object has no name it should refuse it":          {ConfigMap("", nil), "metadata.name: Required value"},
		"When an object is there twice it should refuse the pair": {ConfigMap("ok", nil), `Phase "a", ConfigMap /ok: Duplicate Object`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, w := NewWithT(t), Start(t)
			ns := w.Namespace(t)
			os := ObjectSet(ns, "set", 1, Phase("a", ConfigMap("ok", nil), tc.obj))
			g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
			w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Available", "False", "PreflightError", ""))
			g.Expect(meta.FindStatusCondition(os.Status.Conditions, "Available").Message).To(ContainSubstring(tc.want))
			g.Expect(get(w, t, configMap(ns, "ok"))).NotTo(Succeed(), "nothing is written")
			g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Name: "preflight-admin"}, &rbacv1.ClusterRole{})).NotTo(Succeed())
			g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
			w.Gone(t, os)
		})
	}
}

func TestClusterScope(t *testing.T) {
	t.Run("When a ClusterObjectSet has objects in namespaces and outside it should roll all out", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		role := Object(map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": ns}})
		os := (*v1alpha1.ClusterObjectSet)(ObjectSet("", ns, 1, Phase("a", role, inNamespace(ns, ConfigMap("cm", nil))),
			classed("default", Phase("b", inNamespace(ns, ConfigMap("remote", nil))))))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Available", "True", "Available", ""))
		g.Expect(meta.FindStatusCondition(os.Status.Conditions, "InTransition")).To(BeNil())
		g.Expect(os.Status.RemotePhases).To(HaveLen(1))
		cm := configMap(ns, "cm")
		g.Expect(get(w, t, cm)).To(Succeed())
		g.Expect(metav1.GetControllerOf(cm).Kind).To(Equal("ClusterObjectSet"))
		g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
		w.Gone(t, os)
		g.Expect(get(w, t, cm)).NotTo(Succeed())
	})
}

func TestLostControl(t *testing.T) {
	t.Run("When an object has another controller at teardown it should only let go of it", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		os := ObjectSet(ns, "set", 1, Phase("a", ConfigMap("cm", nil)))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os))
		thief := configMap(ns, "thief")
		g.Expect(w.Client.Create(t.Context(), thief)).To(Succeed())
		cm := configMap(ns, "cm")
		g.Eventually(func() error {
			if err := get(w, t, cm); err != nil {
				return err
			}
			no, yes := false, true
			cm.OwnerReferences[0].Controller = &no
			cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "thief", UID: thief.UID, Controller: &yes})
			return w.Client.Update(t.Context(), cm)
		}, Timeout).Should(Succeed())
		g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
		w.Gone(t, os)
		g.Expect(get(w, t, cm)).To(Succeed())
		g.Expect(cm.OwnerReferences).To(HaveLen(1))
		g.Expect(cm.Labels).NotTo(HaveKey("package-operator.run/cache"))
	})
}

func TestMappedConditionsAndSlices(t *testing.T) {
	t.Run("When objects are in a slice it should roll them out, own the slice, and remove them when archived", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		slice := &v1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "slice"}, Objects: []v1alpha1.ObjectSetObject{ConfigMap("sliced", nil)}}
		g.Expect(w.Client.Create(t.Context(), slice)).To(Succeed())
		p := Phase("a", ConfigMap("inline", nil))
		p.Slices = []string{"slice"}
		os := ObjectSet(ns, "set", 1, p)
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os))
		g.Expect(os.Status.ControllerOf).To(HaveLen(2))
		g.Expect(get(w, t, slice)).To(Succeed())
		g.Expect(slice.OwnerReferences).To(HaveLen(1))
		g.Expect(w.Client.Patch(t.Context(), os, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"lifecycleState":"Archived"}}`)))).To(Succeed())
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Archived", "True", "Archived", ""))
		g.Expect(get(w, t, configMap(ns, "sliced"))).NotTo(Succeed())
	})
	t.Run("When a condition of an object is mapped it should be on the ObjectSet", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		// A set that is never available, as an object whose conditions are known.
		inner := Object(map[string]any{"apiVersion": "package-operator.run/v1alpha1", "kind": "ObjectSet", "metadata": map[string]any{"name": "inner"},
			"spec": map[string]any{"revision": int64(1), "phases": []any{map[string]any{"name": "x", "objects": []any{}}}}})
		inner.ConditionMappings = []v1alpha1.ConditionMapping{{SourceType: "Available", DestinationType: "test.example/Inner"}}
		os := ObjectSet(ns, "outer", 1, Phase("a", inner))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "test.example/Inner", "True", "Available", "Object is available and passes all probes."))
	})
	t.Run("When a condition is mapped to a type that no status accepts it should leave that one out and report the rest", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		inner := Object(map[string]any{"apiVersion": "package-operator.run/v1alpha1", "kind": "ObjectSet", "metadata": map[string]any{"name": "inner"},
			"spec": map[string]any{"revision": int64(1), "phases": []any{map[string]any{"name": "x", "objects": []any{}}}}})
		inner.ConditionMappings = []v1alpha1.ConditionMapping{
			{SourceType: "Available", DestinationType: "Example.com/Inner"}, {SourceType: "Available", DestinationType: "test.example/web/Inner"},
			{SourceType: "Available", DestinationType: "test.example/Inner"},
		}
		os := ObjectSet(w.Namespace(t), "outer", 1, Phase("a", inner))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "test.example/Inner", "True", "Available", ""))
		g.Expect(available(os)()).To(Succeed())
	})
}

func TestRolloutThatFails(t *testing.T) {
	t.Run("When a slice is gone an event should say so once, and when it is back it should roll out by itself", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		p := Phase("a", ConfigMap("inline", nil))
		p.Slices = []string{"slice"}
		os := ObjectSet(ns, "set", 1, p)
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		of := func() []string { return told(t.Context(), w, ns, "ObjectSet", "set") }
		g.Eventually(of, Timeout).Should(ConsistOf(And(HavePrefix("Warning RolloutError "), ContainSubstring("reading slice slice of phase a"))))
		slice := &v1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "slice"}, Objects: []v1alpha1.ObjectSetObject{ConfigMap("sliced", nil)}}
		g.Expect(w.Client.Create(t.Context(), slice)).To(Succeed())
		w.Eventually(t, os, available(os))
		g.Expect(of()).To(HaveLen(1))
	})
}

func TestSuccessDelay(t *testing.T) {
	t.Run("When there is a delay it should succeed after it by itself", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		os := ObjectSet(w.Namespace(t), "set", 1, Phase("a", ConfigMap("cm", nil)))
		os.Spec.SuccessDelaySeconds = 2
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os))
		w.Eventually(t, os, HasCondition(os, &os.Status.Conditions, "Succeeded", "True", "RolloutSuccess", ""))

		later := ObjectSet(w.Namespace(t), "set", 1, Phase("a", ConfigMap("cm", nil)))
		later.Spec.SuccessDelaySeconds = 3600
		g.Expect(w.Client.Create(t.Context(), later)).To(Succeed())
		w.Eventually(t, later, available(later))
		g.Expect(meta.FindStatusCondition(later.Status.Conditions, "Succeeded")).To(BeNil(), "not before")
	})
}
