package objectdeployment_test

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/objectdeployment"
	"hcp.internal/platform/internal/packages/control/objectset"
	"hcp.internal/platform/internal/packages/control/objectsetphase"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
	. "hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func configMap(ns, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

// unindexed lists without an index, which only caches have.
type unindexed struct{ client.Client }

func (c unindexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	uid, _ := o.FieldSelector.RequiresExactMatch("controller")
	o.FieldSelector = nil
	if err := c.Client.List(ctx, list, &o); err != nil {
		return err
	}
	sets := list.(*v1alpha1.ObjectSetList)
	var kept []v1alpha1.ObjectSet
	for _, os := range sets.Items {
		controller := metav1.GetControllerOf(&os)
		if (controller == nil && uid == "none") || (controller != nil && string(controller.UID) == uid) {
			kept = append(kept, os)
		}
	}
	sets.Items = kept
	return nil
}

type noMetrics struct{}

func (noMetrics) ObjectSet(*v1alpha1.ObjectSet)    {}
func (noMetrics) ForgetObjectSet(client.ObjectKey) {}

// run makes fresh reconcilers and calls them until the deployment has settled.
func run(ctx context.Context, c client.WithWatch, mapper meta.RESTMapper, ns string) error {
	return testenv.Settle(c, 8, func(c client.WithWatch) func() error { return start(ctx, c, mapper, ns) })
}

// start makes reconcilers, and a pass that calls each of them once for each of its objects.
func start(ctx context.Context, c client.WithWatch, mapper meta.RESTMapper, ns string) (pass func() error) {
	s := scope.Namespaced
	writer := func(kind string) *status.Writer { return &status.Writer{Client: c, Kind: s.GroupVersionKind(kind)} }
	deployments := &objectdeployment.Reconciler{Scope: s, Client: unindexed{c}, Live: testenv.Uncached(c), Clock: clock.RealClock{}, Status: writer("ObjectDeployment")}
	sets := &objectset.Reconciler{
		Scope: s, Client: c, Live: testenv.Uncached(c), Clock: clock.RealClock{}, Status: writer("ObjectSet"), Metrics: noMetrics{},
		Engine: &phase.Engine{Client: testenv.Uncached(c), Mapper: mapper, Watch: Unwatched{}, Rules: phase.Unclassed()},
	}
	phases := &objectsetphase.Reconciler{
		Scope: s, Class: v1alpha1.DefaultPhaseClass, Client: c, Clock: clock.RealClock{}, Status: writer("ObjectSetPhase"),
		Engine: &phase.Engine{Client: testenv.Uncached(c), Mapper: mapper, Watch: Unwatched{}, Rules: phase.SameCluster()},
	}
	return func() error {
		if _, err := deployments.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "web"}}); err != nil {
			return err
		}
		list := &v1alpha1.ObjectSetList{}
		if err := c.List(ctx, list, client.InNamespace(ns)); err != nil {
			return err
		}
		for i := range list.Items {
			if _, err := sets.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}); err != nil {
				return err
			}
		}
		classed := &v1alpha1.ObjectSetPhaseList{}
		if err := c.List(ctx, classed, client.InNamespace(ns)); err != nil {
			return err
		}
		for i := range classed.Items {
			if _, err := phases.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&classed.Items[i])}); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestCrash(t *testing.T) {
	w := Serve(t)
	mapper := w.Client.RESTMapper()
	prepare := func(t testing.TB) (string, *v1alpha1.ObjectDeployment) {
		g := NewWithT(t)
		ns := w.Namespace(t)
		od := ObjectDeployment(ns, "web", Phase("a", ConfigMap("shared", map[string]any{"v": "1"}), ConfigMap("old", nil)), Phase("b", ConfigMap("second", nil)))
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		return ns, od
	}
	update := func(t testing.TB, od *v1alpha1.ObjectDeployment) {
		g := NewWithT(t)
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(od), od)).To(Succeed())
		od.Spec.Template.Spec.Phases[0] = Phase("a", ConfigMap("shared", map[string]any{"v": "2"}), ConfigMap("new", nil))
		g.Expect(w.Client.Update(t.Context(), od)).To(Succeed())
	}
	fresh := func(t testing.TB) testenv.CrashCase {
		ns, od := prepare(t)
		g := NewWithT(t)
		g.Expect(run(t.Context(), w.Client, mapper, ns)).To(Succeed())
		update(t, od)
		return testenv.CrashCase{
			Client: w.Client,
			Run:    func(c client.WithWatch) error { return run(t.Context(), c, mapper, ns) },
			Check: func(t testing.TB) {
				g := NewWithT(t)
				g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(od), od)).To(Succeed())
				g.Expect(HasCondition(od, &od.Status.Conditions, "Available", "True", "Available", "Latest Revision is Available.")()).To(Succeed())
				g.Expect(od.Status.Revision).To(Equal(int64(2)))
				for name, there := range map[string]bool{"shared": true, "new": true, "second": true, "old": false} {
					cm := configMap(ns, name)
					err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)
					g.Expect(err == nil).To(Equal(there), name)
					if there {
						g.Expect(cm.OwnerReferences).To(HaveLen(1), name)
						g.Expect(cm.Annotations).To(HaveKeyWithValue(v1alpha1.RevisionAnnotation, "2"))
						g.Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.CacheLabel, "True"))
					}
				}
				list := &v1alpha1.ObjectSetList{}
				g.Expect(w.Client.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
				g.Expect(list.Items).To(HaveLen(2))
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 2, fresh)
	testenv.Storm(t, 2, fresh)
	t.Run("When everything is settled it should write nothing, also after a restart", func(t *testing.T) {
		ns, od := prepare(t)
		g := NewWithT(t)
		g.Expect(run(t.Context(), w.Client, mapper, ns)).To(Succeed())
		update(t, od)
		g.Expect(run(t.Context(), w.Client, mapper, ns)).To(Succeed())
		testenv.ExpectQuiet(t, w.Client, func(c client.WithWatch) error { return run(t.Context(), c, mapper, ns) })
	})
	t.Run("When somebody creates an object in the moment that we do it should stay theirs", func(t *testing.T) {
		ns, _ := prepare(t)
		g := NewWithT(t)
		// The object appears between our look and our write.
		racing := &racingClient{WithWatch: w.Client, before: func() {
			theirs := configMap(ns, "second")
			theirs.Data = map[string]string{"theirs": "x"}
			g.Expect(w.Client.Create(t.Context(), theirs, client.FieldOwner("somebody"))).To(Succeed())
		}, name: "second"}
		err := run(t.Context(), racing, mapper, ns)
		g.Expect(err).To(HaveOccurred())
		cm := configMap(ns, "second")
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		g.Expect(cm.OwnerReferences).To(BeEmpty())
		g.Expect(cm.Labels).To(BeEmpty())
		g.Expect(cm.Annotations).To(BeEmpty())
		g.Expect(run(t.Context(), w.Client, mapper, ns)).To(Succeed())
		list := &v1alpha1.ObjectSetList{}
		g.Expect(w.Client.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		for _, os := range list.Items {
			g.Expect(meta.FindStatusCondition(os.Status.Conditions, "Available").Reason).To(Equal("CollisionDetected"))
		}
	})
}

// TestCrashOfClassedHandover interrupts an update at each write whose objects belong to a phase of class "default", and so to an object of its own.
func TestCrashOfClassedHandover(t *testing.T) {
	w := Serve(t)
	mapper := w.Client.RESTMapper()
	phases := func(ns, value, other string) []v1alpha1.ObjectSetTemplatePhase {
		shared, only := ConfigMap("shared", map[string]any{"v": value}), ConfigMap(other, nil)
		shared.Object.SetNamespace(ns)
		only.Object.SetNamespace(ns)
		classed := Phase("a", shared, only)
		classed.Class = v1alpha1.DefaultPhaseClass
		return []v1alpha1.ObjectSetTemplatePhase{classed, Phase("b", ConfigMap("second", map[string]any{"v": value}))}
	}
	fresh := func(t testing.TB) testenv.CrashCase {
		g, ns := NewWithT(t), w.Namespace(t)
		od := ObjectDeployment(ns, "web", phases(ns, "1", "old")...)
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		g.Expect(run(t.Context(), w.Client, mapper, ns)).To(Succeed())
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(od), od)).To(Succeed())
		g.Expect(HasCondition(od, &od.Status.Conditions, "Available", "True", "Available", "Latest Revision is Available.")()).To(Succeed())
		od.Spec.Template.Spec.Phases = phases(ns, "2", "new")
		g.Expect(w.Client.Update(t.Context(), od)).To(Succeed())
		return testenv.CrashCase{
			Client: w.Client,
			Run:    func(c client.WithWatch) error { return run(t.Context(), c, mapper, ns) },
			Check: func(t testing.TB) {
				g := NewWithT(t)
				g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(od), od)).To(Succeed())
				g.Expect(HasCondition(od, &od.Status.Conditions, "Available", "True", "Available", "Latest Revision is Available.")()).To(Succeed())
				g.Expect(od.Status.Revision).To(Equal(int64(2)))
				left := &v1alpha1.ObjectSetPhaseList{}
				g.Expect(w.Client.List(t.Context(), left, client.InNamespace(ns))).To(Succeed())
				g.Expect(left.Items).To(HaveLen(1), "that of the old revision is gone")
				for name, kind := range map[string]string{"shared": "ObjectSetPhase", "new": "ObjectSetPhase", "second": "ObjectSet"} {
					cm := configMap(ns, name)
					g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
					g.Expect(cm.OwnerReferences).To(HaveExactElements(HaveField("Kind", kind)), name)
					g.Expect(cm.Annotations).To(HaveKeyWithValue(v1alpha1.RevisionAnnotation, "2"))
					if kind == "ObjectSetPhase" {
						g.Expect(metav1.IsControlledBy(cm, &left.Items[0])).To(BeTrue(), name)
					}
				}
				g.Expect(apierrors.IsNotFound(w.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "old"}, configMap(ns, "old")))).To(BeTrue())
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 4, fresh)
	testenv.Storm(t, 2, fresh)
}

// TestCrashOfTeardown interrupts the end of a revision, which has a phase of class "default" between two others, at each write.
func TestCrashOfTeardown(t *testing.T) {
	w := Serve(t)
	mapper := w.Client.RESTMapper()
	fresh := func(t testing.TB) testenv.CrashCase {
		g := NewWithT(t)
		ns := w.Namespace(t)
		inNamespace := ConfigMap("classed", nil)
		inNamespace.Object.SetNamespace(ns)
		classed := Phase("b", inNamespace)
		classed.Class = v1alpha1.DefaultPhaseClass
		set := ObjectSet(ns, "web", 1, Phase("a", ConfigMap("first", nil)), classed, Phase("c", ConfigMap("last", nil), ConfigMap("theirs", nil)))
		g.Expect(w.Client.Create(t.Context(), set)).To(Succeed())
		g.Expect(run(t.Context(), w.Client, mapper, ns)).To(Succeed())
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set)).To(Succeed())
		g.Expect(HasCondition(set, &set.Status.Conditions, "Available", "True", "Available", "")()).To(Succeed())
		// Somebody else has taken one of the objects over.
		theirs := configMap(ns, "theirs")
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
		theirs.OwnerReferences[0].Controller = nil
		g.Expect(w.Client.Update(t.Context(), theirs)).To(Succeed())
		g.Expect(w.Client.Delete(t.Context(), set)).To(Succeed())
		return testenv.CrashCase{
			Client: w.Client,
			Run:    func(c client.WithWatch) error { return run(t.Context(), c, mapper, ns) },
			Check: func(t testing.TB) {
				g := NewWithT(t)
				for _, name := range []string{"first", "classed", "last"} {
					g.Expect(apierrors.IsNotFound(w.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, configMap(ns, name)))).To(BeTrue(), name)
				}
				g.Expect(apierrors.IsNotFound(w.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))).To(BeTrue(), "the revision")
				phases := &v1alpha1.ObjectSetPhaseList{}
				g.Expect(w.Client.List(t.Context(), phases, client.InNamespace(ns))).To(Succeed())
				g.Expect(phases.Items).To(BeEmpty())
				g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
				g.Expect(theirs.OwnerReferences).To(BeEmpty(), "what is somebody else's stays, without us")
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}

// racingClient lets something happen before the first real write of an object.
type racingClient struct {
	client.WithWatch
	name   string
	before func()
	done   bool
}

func (c *racingClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	o := client.PatchOptions{}
	o.ApplyOptions(opts)
	if obj.GetName() == c.name && len(o.DryRun) == 0 && !c.done {
		c.done = true
		c.before()
	}
	return c.WithWatch.Patch(ctx, obj, patch, opts...)
}
