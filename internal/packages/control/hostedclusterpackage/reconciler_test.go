package hostedclusterpackage

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/control/metrics"
	"hcp.internal/platform/internal/testenv"
)

// recorded is what metrics would show.
type recorded map[string]metrics.Rollout

func (r recorded) Rollout(name string, now metrics.Rollout) {
	now.Now = time.Time{} // another each time
	r[name] = now
}
func (r recorded) ForgetRollout(name string) { delete(r, name) }

func TestReconcile(t *testing.T) {
	partitioned := func(p *packagesv1.HostedClusterPackage) {
		p.Spec.Partition = &packagesv1.HostedClusterPackagePartitionSpec{LabelKey: "risk",
			Order: &packagesv1.HostedClusterPackagePartitionOrderSpec{Static: []string{"low", "high"}}}
	}
	t.Run("When clusters are there it should make a Package for each at once, with what the template says and no more", func(t *testing.T) {
		w := newWorld(t, partitioned, "a=low", "b=high", "c")
		r := w.reconciler(w.c)
		w.pass(r)
		for _, name := range []string{"a", "b", "c"} {
			p := w.pkg(name)
			w.g.Expect(p.Labels).To(Equal(map[string]string{"foo": "bar"}))
			w.g.Expect(metav1.IsControlledBy(p, w.owner)).To(BeTrue())
			w.g.Expect(p.Spec.Paused).To(BeFalse())
			w.g.Expect(p.ManagedFields[0].FieldsV1.GetRawString()).NotTo(ContainSubstring("paused"), "others may pause a Package")
			w.settle(name, true)
		}
		w.pass(r)
		w.g.Expect(w.condition("Available")).To(Equal("True EnoughPackagesAvailable 3/3 packages available."))
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 3/3 packages progressed."))
		w.g.Expect(w.condition("HasPausedPackage")).To(Equal("False NoPackagePaused 0/3 packages paused."))
		w.g.Expect(w.read().Status.Partitions).To(HaveExactElements(HaveField("Name", "low"), HaveField("Name", "high"), HaveField("Name", "unknown")))
	})

	t.Run("When a bad version stops a group a revert should reach the broken cluster, and leave the others alone", func(t *testing.T) {
		w := newWorld(t, partitioned, "a=low", "b=low", "c=high")
		r := w.reconciler(w.c)
		recorded := recorded{}
		r.Metrics = recorded
		w.pass(r)
		for _, name := range []string{"a", "b", "c"} {
			w.settle(name, true)
		}
		w.pass(r)
		w.g.Expect(recorded[w.ns]).To(Equal(metrics.Rollout{State: metrics.RolloutComplete, Total: 3, Available: 3, Progressed: 3, Updated: 3, Groups: 2, GroupsDone: 2, Budget: 1}))
		w.template("v2")
		w.pass(r)
		w.g.Expect(w.read().Status.Processing).To(HaveExactElements(HaveField("UID", w.pkg("a").UID)))
		w.settle("a", false)
		w.pass(r)
		w.g.Expect([]string{w.image("a"), w.image("b"), w.image("c")}).To(Equal([]string{"registry.example/addon:v2", "registry.example/addon:v1", "registry.example/addon:v1"}))
		w.g.Expect(w.condition("Progressing")).To(HavePrefix("True NotAllPackagesProgressed 2/3 packages progressed. Group low is current. Unavailable, which uses up maxUnavailable 1: " + w.ns + "/a."))
		w.g.Expect(recorded[w.ns]).To(Equal(metrics.Rollout{State: metrics.RolloutProgressing, Total: 3, Available: 2, Progressed: 2, Updated: 1, Unavailable: 1, Groups: 2, Budget: 1, Used: 1}))
		generation := w.pkg("b").Generation
		w.template("v1")
		w.pass(r)
		w.g.Expect(w.image("a")).To(Equal("registry.example/addon:v1"))
		w.settle("a", true)
		w.pass(r)
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 3/3 packages progressed."))
		w.g.Expect(w.pkg("b").Generation).To(Equal(generation))
		w.g.Expect(w.read().Status.Processing).To(BeEmpty())
		w.g.Expect(recorded[w.ns].State).To(Equal(metrics.RolloutComplete))

		list, err := History(t.Context(), w.c, w.ns, w.read())
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(list).To(HaveExactElements(
			And(HaveField("Spec.Image", HaveSuffix("v2")), HaveField("Number", int64(2)), HaveField("Completed", BeNil())),
			And(HaveField("Spec.Image", HaveSuffix("v1")), HaveField("Number", int64(3)), HaveField("Completed", Not(BeNil())))))
	})

	t.Run("When a cluster no longer matches its Package should go, and when it is merely down it should stay", func(t *testing.T) {
		w := newWorld(t, nil, "a", "b")
		r := w.reconciler(w.c)
		w.pass(r)
		w.available("a", false)
		hc := &hyperv1.HostedCluster{}
		w.g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "b"}, hc)).To(Succeed())
		before := hc.DeepCopy()
		hc.Labels = nil
		w.g.Expect(w.c.Patch(t.Context(), hc, client.MergeFrom(before))).To(Succeed())
		w.pass(r)
		w.g.Expect(w.pkg("a")).NotTo(BeNil())
		w.g.Expect(w.pkg("b")).To(BeNil())
		w.g.Expect(w.condition("Progressing")).To(Equal("True NotAllPackagesProgressed 0/1 packages progressed. Unavailable, which uses up maxUnavailable 1: " + w.ns + "/a. " +
			"Hosted clusters that are not Available, and come last in their group: " + w.ns + "/a."))
	})

	t.Run("When a cluster would have the control-plane namespace of another one it should not speak for that", func(t *testing.T) {
		w := newWorld(t, nil, "a", "b", "x-y")
		r := w.reconciler(w.c)
		ns := &corev1.Namespace{}
		w.g.Expect(w.c.Get(t.Context(), client.ObjectKey{Name: names.ControlPlaneNamespace(w.ns, "x-y")}, ns)).To(Succeed())
		ns.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: w.ns + "/x-y"}
		w.g.Expect(w.c.Update(t.Context(), ns)).To(Succeed())
		// It is refused, but whoever made it chooses its labels.
		w.g.Expect(w.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-x"}})).To(Succeed())
		other := testenv.HostedCluster(w.ns+"-x", "y")
		other.Labels = map[string]string{"fleet": w.ns}
		w.g.Expect(w.c.Create(t.Context(), other)).To(Succeed())
		w.pass(r)
		for _, cluster := range []string{"a", "b", "x-y"} {
			w.settle(cluster, true)
		}
		w.pass(r)
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 3/3 packages progressed."))

		hc := &hyperv1.HostedCluster{}
		w.g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "x-y"}, hc)).To(Succeed())
		before := hc.DeepCopy()
		hc.Labels = nil
		w.g.Expect(w.c.Patch(t.Context(), hc, client.MergeFrom(before))).To(Succeed())
		w.pass(r)
		w.g.Expect(w.pkg("x-y")).To(BeNil(), "the labels of its own HostedCluster count")
		w.g.Expect(w.c.Delete(t.Context(), other)).To(Succeed())
	})

	t.Run("When somebody else owns what is applied it should go on with the others and say so", func(t *testing.T) {
		w := newWorld(t, func(p *packagesv1.HostedClusterPackage) { p.Spec.Strategy.RollingUpgrade.MaxUnavailable = 5 }, "a", "b")
		r := w.reconciler(w.c)
		w.pass(r)
		w.settle("a", true)
		w.settle("b", true)
		theirs := w.pkg("a")
		before := theirs.DeepCopy()
		theirs.Spec.Image = "registry.example/theirs:1"
		w.g.Expect(w.c.Patch(t.Context(), theirs, client.MergeFrom(before), client.FieldOwner("somebody"))).To(Succeed())
		w.template("v2")
		_, err := r.Reconcile(t.Context(), w.request())
		w.g.Expect(err).To(MatchError(And(ContainSubstring("hosted cluster "+w.ns+"/a"), ContainSubstring("conflict"))))
		w.g.Expect(w.image("b")).To(Equal("registry.example/addon:v2"))
	})

	t.Run("When a cluster misses its deadline it should return to the last good version", func(t *testing.T) {
		w := newWorld(t, func(p *packagesv1.HostedClusterPackage) {
			p.Annotations = map[string]string{packagesv1.RolloutDeadlineAnnotation: "10m", packagesv1.RolloutOnFailureAnnotation: "return-cluster"}
		}, "a")
		clk := clocktesting.NewFakePassiveClock(time.Now())
		r := w.reconciler(w.c)
		r.Clock = clk
		w.pass(r)
		w.settle("a", true)
		w.pass(r)
		w.template("v2")
		w.pass(r)
		w.settle("a", false)
		w.g.Expect(w.pass(r).RequeueAfter).To(BeNumerically("<=", 5*time.Minute))
		w.g.Expect(w.image("a")).To(Equal("registry.example/addon:v2"))
		clk.SetTime(time.Now().Add(11 * time.Minute))
		w.pass(r)
		w.g.Expect(w.image("a")).To(Equal("registry.example/addon:v1"))
		w.settle("a", true)
		w.pass(r)
		w.pass(r)
		w.g.Expect(w.image("a")).To(Equal("registry.example/addon:v1"), "what failed isn't tried again")
		w.g.Expect(w.condition("Progressing")).To(ContainSubstring("Failed and returned to the last good version: " + w.ns + "/a."))
	})

	t.Run("When the selector can't be meant it should say so, touch nothing and wait for another one", func(t *testing.T) {
		w := newWorld(t, nil, "a")
		r := w.reconciler(w.c)
		w.pass(r)
		w.settle("a", true)
		w.pass(r)
		w.change(func(p *packagesv1.HostedClusterPackage) {
			p.Spec.HostedClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "risk", Operator: "Resembles", Values: []string{"low"}}}
		})
		told := events.NewFakeRecorder(10)
		r.Events = told
		w.g.Expect(w.pass(r)).To(Equal(ctrl.Result{}))
		w.g.Expect(told.Events).To(Receive(And(HavePrefix("Warning InvalidSelector"), ContainSubstring(`spec.hostedClusterSelector: "Resembles" is not a valid label selector operator`))))
		w.g.Expect(w.pkg("a")).NotTo(BeNil())
		w.change(func(p *packagesv1.HostedClusterPackage) { p.Spec.HostedClusterSelector.MatchExpressions = nil })
		w.template("v2")
		w.pass(r)
		w.g.Expect(w.image("a")).To(HaveSuffix("v2"))
	})

	t.Run("When annotations of the rollout are changed to what can't be read it should say so once", func(t *testing.T) {
		w := newWorld(t, nil, "a")
		r := w.reconciler(w.c)
		w.pass(r)
		told := events.NewFakeRecorder(10)
		r.Events = told
		annotate := func(value string) {
			w.change(func(p *packagesv1.HostedClusterPackage) {
				p.Annotations = map[string]string{packagesv1.RolloutDeadlineAnnotation: value}
			})
			w.pass(r)
			w.pass(r)
		}
		wrong := And(HavePrefix("Warning InvalidAnnotation"), ContainSubstring(packagesv1.RolloutDeadlineAnnotation))
		annotate("10 m")
		w.g.Expect(told.Events).To(Receive(wrong))
		w.g.Expect(told.Events).NotTo(Receive(wrong), "it was told")
		annotate("10m")
		annotate("10 m")
		w.g.Expect(told.Events).To(Receive(wrong), "it was right in between")
	})

	t.Run("When all is done a pass should write nothing", func(t *testing.T) {
		w := newWorld(t, partitioned, "a=low", "b")
		r := w.reconciler(w.c)
		w.pass(r)
		w.settle("a", true)
		w.settle("b", true)
		w.pass(r)
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error {
			again := w.reconciler(c)
			again.Live = c
			_, err := again.Reconcile(t.Context(), w.request())
			return err
		})
	})
}

func TestCrashes(t *testing.T) {
	t.Run("When the process dies at any write the next one should finish the rollout within the budget", func(t *testing.T) {
		fresh := func(t testing.TB) testenv.CrashCase {
			w := newWorld(t.(*testing.T), nil, "a", "b")
			first := w.reconciler(w.c)
			w.pass(first)
			w.settle("a", true)
			w.settle("b", true)
			w.pass(first)
			w.template("v2")
			return testenv.CrashCase{Client: w.c, Run: func(c client.WithWatch) error {
				r := w.reconciler(c)
				for range 6 {
					if _, err := r.Reconcile(t.Context(), w.request()); err != nil {
						return err
					}
					down := 0
					for _, name := range []string{"a", "b"} {
						if p := w.pkg(name); p.Status.Conditions[0].ObservedGeneration != p.Generation {
							down++
							w.settle(name, true)
						}
					}
					if down > 1 {
						t.Errorf("%d Packages are down at once", down)
					}
				}
				return nil
			}, Check: func(t testing.TB) {
				if got := w.condition("Progressing"); got != "False AllPackagesProgressed 2/2 packages progressed." {
					t.Errorf("the rollout ended with %s", got)
				}
			}}
		}
		testenv.CrashAtEveryWrite(t, 1, fresh)
		testenv.Storm(t, 2, fresh)
	})
}

// TestProcess runs the controller as the process does, with caches and watches.
func TestProcess(t *testing.T) {
	t.Run("When events alone drive it a rollout should go through its groups", func(t *testing.T) {
		w := newWorld(t, func(p *packagesv1.HostedClusterPackage) {
			p.Spec.Partition = &packagesv1.HostedClusterPackagePartitionSpec{LabelKey: "risk"}
		}, "a=1", "b=1", "c=2", "d")
		mgr, err := ctrl.NewManager(w.env.Config, ctrl.Options{Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
			Controller: process.Queue()})
		w.g.Expect(err).NotTo(HaveOccurred())
		r := &Reconciler{Client: mgr.GetClient(), Live: w.c, Namespace: w.ns, Clock: clock.RealClock{}, Events: events.NewFakeRecorder(1000)}
		w.g.Expect(r.SetupWithManager(mgr)).To(Succeed())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		defer func() {
			stop()
			w.g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
		}()
		all := []string{"a", "b", "c", "d"}
		for _, name := range all {
			w.g.Eventually(func() bool { return w.pkg(name) != nil }).WithTimeout(time.Minute).Should(BeTrue())
			w.settle(name, true)
		}
		w.g.Eventually(func() string { return w.condition("Progressing") }).WithTimeout(time.Minute).Should(Equal("False AllPackagesProgressed 4/4 packages progressed."))
		w.template("v2")
		for _, name := range all {
			w.g.Eventually(func() string { return w.image(name) }).WithTimeout(time.Minute).Should(HaveSuffix("v2"))
			down := 0
			for _, other := range all {
				p := w.pkg(other)
				if p.Status.Conditions[0].ObservedGeneration != p.Generation {
					down++
				}
			}
			w.g.Expect(down).To(Equal(1))
			w.settle(name, true)
		}
		w.g.Eventually(func() string { return w.condition("Progressing") }).WithTimeout(time.Minute).Should(Equal("False AllPackagesProgressed 4/4 packages progressed."))
	})
}
