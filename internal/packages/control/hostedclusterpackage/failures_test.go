package hostedclusterpackage

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/environment"
)

// TestRefusals is about Packages that can't be written.
func TestRefusals(t *testing.T) {
	t.Run("When one Package can't be written the others should go on, status should say so, and it should follow when it can be", func(t *testing.T) {
		w := newWorld(t, nil, "a", "b", "c")
		r := w.reconciler(w.c)
		w.pass(r)
		for _, name := range []string{"a", "b", "c"} {
			w.settle(name, true)
		}
		w.pass(r)
		edit := func(image string) {
			t.Helper()
			theirs := w.pkg("a")
			before := theirs.DeepCopy()
			theirs.Spec.Image = "registry.example/" + image
			w.g.Expect(w.c.Patch(t.Context(), theirs, client.MergeFrom(before), client.FieldOwner("kubectl-edit"))).To(Succeed())
			w.settle("a", true)
		}
		edit("hotfix:1")
		w.template("v2")
		_, err := r.Reconcile(t.Context(), w.request())
		w.g.Expect(err).To(MatchError(ContainSubstring("conflict")))
		w.g.Expect(w.read().Status.ObservedGeneration).To(Equal(int32(w.read().Generation))) // the published width
		w.g.Expect(w.condition("Progressing")).To(HavePrefix(
			"True NotAllPackagesProgressed 3/3 packages progressed. Can't be written, and tried again later: " + w.ns + "/a (Apply failed with 1 conflict"))
		for _, name := range []string{"b", "c"} {
			w.pass(r)
			w.g.Expect(w.image(name)).To(HaveSuffix("v2"))
			w.settle(name, true)
		}
		w.g.Expect(w.image("a")).To(HaveSuffix("hotfix:1"))
		w.g.Expect(w.pass(r).RequeueAfter).To(BeNumerically(">", 0))
		w.g.Expect(w.condition("Progressing")).To(ContainSubstring("Can't be written"))
		w.g.Expect(w.read().Status.UpdatedPackages).To(Equal(int32(2)))
		edit("addon:v2") // the person takes what the template says
		w.pass(r)
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 3/3 packages progressed."))
	})
	t.Run("When it fails again and again it should be tried less and less often", func(t *testing.T) {
		g := NewWithT(t)
		var list refusals
		now := time.Now()
		g.Expect(list.of("ns", "hash", 1, now)).To(BeEmpty())
		var waits []time.Duration
		for range 10 {
			list.put("ns", "hash", 1, errNotTheNewest, now)
			waits = append(waits, list.next(now))
		}
		g.Expect(waits[:3]).To(Equal([]time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}))
		g.Expect(waits[9]).To(Equal(5 * time.Minute))
		g.Expect(list.of("ns", "hash", 1, now)).NotTo(BeEmpty())
		g.Expect(list.of("ns", "hash", 2, now)).To(BeEmpty(), "somebody changed the Package")
		g.Expect(list.of("ns", "other", 1, now)).To(BeEmpty(), "somebody changed the template")
		g.Expect(list.of("ns", "hash", 1, now.Add(time.Hour))).To(BeEmpty())
	})
}

func TestRemovalHeld(t *testing.T) {
	t.Run("When a mistake in the selector matches nothing it should keep all Packages, say so, and remove them when that is confirmed", func(t *testing.T) {
		w := newWorld(t, nil, "a", "b", "c")
		r := w.reconciler(w.c)
		w.pass(r)
		wrong := func(value string) {
			w.change(func(p *packagesv1.HostedClusterPackage) { p.Spec.HostedClusterSelector.MatchLabels["fleet"] = value })
		}
		wrong("tpyo")
		w.pass(r)
		w.g.Expect(w.condition(packagesv1.ConditionRemovalHeld)).To(HavePrefix("True SelectorLeavesOutMost The selector matches no longer the hosted clusters of 3 Packages"))
		for _, name := range []string{"a", "b", "c"} {
			w.g.Expect(w.pkg(name)).NotTo(BeNil())
		}
		wrong(w.ns)
		w.pass(r)
		w.g.Expect(w.condition(packagesv1.ConditionRemovalHeld)).To(BeEmpty())
		wrong("tpyo")
		w.pass(r)
		w.change(func(p *packagesv1.HostedClusterPackage) {
			p.Annotations = map[string]string{packagesv1.RolloutRemoveAnnotation: "3"}
		})
		w.pass(r)
		for _, name := range []string{"a", "b", "c"} {
			w.g.Expect(w.pkg(name)).To(BeNil())
		}
		w.g.Expect(w.condition(packagesv1.ConditionRemovalHeld)).To(BeEmpty())
	})
}

// say lets the package operator report something else of a Package.
func (w *world) say(name string, change func(*packagesv1.Package)) {
	w.Helper()
	p := w.pkg(name)
	before := p.DeepCopy()
	change(p)
	w.g.Expect(w.c.Status().Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
}

// outdated lets a Package wait to be rendered for the environment of hash; "" ends that.
func (w *world) outdated(name, hash string) {
	w.Helper()
	w.say(name, func(p *packagesv1.Package) {
		if conditions.Remove(&p.Status.Conditions, packagesv1.ConditionEnvironmentOutdated); hash != "" {
			c := environment.Outdated(hash)
			c.ObservedGeneration = p.Generation
			conditions.Set(&p.Status.Conditions, time.Now(), c)
		}
	})
}

// told are the environments that Packages were told to be rendered for.
func (w *world) told(names ...string) (out []string) {
	w.Helper()
	for _, name := range names {
		out = append(out, w.pkg(name).Annotations[packagesv1.RolloutEnvironmentAnnotation])
	}
	return out
}

// TestEnvironment is about Packages that were rendered for another environment, as before an upgrade of the management cluster.
func TestEnvironment(t *testing.T) {
	t.Run("When the environment of all Packages changes they should be rendered for it one after the other", func(t *testing.T) {
		w := newWorld(t, nil, "a", "b", "c")
		r := w.reconciler(w.c)
		w.pass(r)
		all, told := []string{"a", "b", "c"}, []string{"", "", ""}
		for _, name := range all {
			w.settle(name, true)
		}
		w.pass(r)
		generation := w.pkg("a").Generation
		for _, name := range all {
			w.outdated(name, "newer")
		}
		for i, name := range all {
			w.pass(r)
			w.pass(r)
			told[i] = "newer"
			w.g.Expect(w.told(all...)).To(Equal(told), "it is told, and has not done it")
			w.g.Expect(w.read().Status.Processing).To(HaveLen(1))
			w.outdated(name, "")
			w.say(name, func(p *packagesv1.Package) {
				conditions.Set(&p.Status.Conditions, time.Now(),
					metav1.Condition{Type: packagesv1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: p.Generation})
			})
			w.pass(r)
			w.g.Expect(w.told(all...)).To(Equal(told), "it is being done")
			w.settle(name, true)
		}
		w.pass(r)
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 3/3 packages progressed."))
		w.g.Expect(w.pkg("a").Generation).To(Equal(generation))
	})
	t.Run("When a cache doesn't show yet that one was told it should keep its slot", func(t *testing.T) {
		w := newWorld(t, nil, "a", "b")
		var behind *packagesv1.PackageList // nil: the cache is up to date
		r := w.reconciler(interceptor.NewClient(w.c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if packages, ok := list.(*packagesv1.PackageList); ok && behind != nil {
				behind.DeepCopyInto(packages)
				return nil
			}
			return c.List(ctx, list, opts...)
		}}))
		w.pass(r)
		for _, name := range []string{"a", "b"} {
			w.settle(name, true)
			w.outdated(name, "newer")
		}
		before := &packagesv1.PackageList{}
		w.g.Expect(w.c.List(t.Context(), before)).To(Succeed())
		w.pass(r)
		w.g.Expect(w.told("a", "b")).To(Equal([]string{"newer", ""}))
		behind = before
		w.available("a", false) // what it was told to do takes its cluster down, which puts that last
		w.pass(r)
		w.g.Expect(w.told("a", "b")).To(Equal([]string{"newer", ""}), "maxUnavailable is 1")
		w.g.Expect(w.read().Status.Processing).To(HaveExactElements(HaveField("UID", w.pkg("a").UID)))
		behind = nil
		w.outdated("a", "")
		w.pass(r)
		w.g.Expect(w.told("a", "b")).To(Equal([]string{"newer", "newer"}), "it has done it")
	})
}

func TestPausedByTemplate(t *testing.T) {
	t.Run("When the template pauses Packages it should reach all of them, one after the other", func(t *testing.T) {
		w := newWorld(t, nil, "a", "b", "c")
		r := w.reconciler(w.c)
		w.pass(r)
		all := []string{"a", "b", "c"}
		for _, name := range all {
			w.settle(name, true)
		}
		w.pass(r)
		w.change(func(p *packagesv1.HostedClusterPackage) { p.Spec.Template.Spec.Paused = true })
		for _, name := range all {
			w.pass(r)
			p := w.pkg(name)
			w.g.Expect(p.Spec.Paused).To(BeTrue(), name)
			// What the package operator says of one that is paused: nothing new about its being unpacked.
			before := p.DeepCopy()
			conditions.Set(&p.Status.Conditions, time.Now(),
				metav1.Condition{Type: packagesv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: p.Generation},
				metav1.Condition{Type: packagesv1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "Test", ObservedGeneration: p.Generation},
				metav1.Condition{Type: packagesv1.ConditionPaused, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: p.Generation})
			w.g.Expect(w.c.Status().Patch(t.Context(), p, client.MergeFrom(before))).To(Succeed())
		}
		w.pass(r)
		w.g.Expect(w.condition("HasPausedPackage")).To(Equal("True AtLeastOnePackagePaused 3/3 packages paused."))
		w.g.Expect(w.read().Status.Processing).To(BeEmpty())
	})
}

// TestHistoryLeftBehind is about what a HostedClusterPackage leaves when it is deleted with --cascade=orphan.
func TestHistoryLeftBehind(t *testing.T) {
	t.Run("When it is made again it should take its history over, and work", func(t *testing.T) {
		w := newWorld(t, nil, "a")
		r := w.reconciler(w.c)
		w.pass(r)
		w.settle("a", true)
		w.pass(r)
		fresh := w.read()
		w.g.Expect(w.c.Delete(t.Context(), fresh)).To(Succeed())
		// The garbage collector's part.
		list := &appsv1.ControllerRevisionList{}
		w.g.Expect(w.c.List(t.Context(), list, client.InNamespace(w.ns))).To(Succeed())
		w.g.Expect(list.Items).To(HaveLen(1))
		orphan := func(obj client.Object) {
			before, ok := obj.DeepCopyObject().(client.Object)
			w.g.Expect(ok).To(BeTrue())
			obj.SetOwnerReferences(nil)
			w.g.Expect(w.c.Patch(t.Context(), obj, client.MergeFrom(before))).To(Succeed())
		}
		orphan(&list.Items[0])
		orphan(w.pkg("a"))

		again := &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: fresh.Name}, Spec: fresh.Spec}
		w.g.Expect(w.c.Create(t.Context(), again)).To(Succeed())
		w.pass(r)
		w.pass(r)
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 1/1 packages progressed."))
		history, err := History(t.Context(), w.c, w.ns, w.read())
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(history).To(HaveExactElements(HaveField("Completed", Not(BeNil()))))
		w.template("v2")
		w.pass(r)
		w.g.Expect(w.image("a")).To(HaveSuffix("v2"))
	})
	t.Run("When the selector matches nothing no template should be noted as completed", func(t *testing.T) {
		w := newWorld(t, nil)
		w.pass(w.reconciler(w.c))
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 0/0 packages progressed."))
		history, err := History(t.Context(), w.c, w.ns, w.read())
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(history).To(HaveExactElements(HaveField("Completed", BeNil())))
	})
}
