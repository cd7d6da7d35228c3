package fleet

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/sizing"
	"hcp.internal/platform/internal/testenv"
)

func newScheme(g Gomega) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme, schedulingv1alpha1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	return scheme
}

// scene is a fleet on a real API server, whose time the test makes pass.
type scene struct {
	*testing.T
	c   client.WithWatch
	ns  string
	now *testclock.FakePassiveClock
}

func newScene(t *testing.T) *scene {
	g, env := NewWithT(t), testenv.Start(t)
	return &scene{T: t, c: env.Client(t, newScheme(g)), ns: env.Namespace(t), now: testclock.NewFakePassiveClock(time.Now().Truncate(time.Second))}
}

func (s *scene) pass(c client.Client, r interface {
	Reconcile(context.Context, ctrl.Request) (ctrl.Result, error)
}, key client.ObjectKey) ctrl.Result {
	s.Helper()
	result, err := r.Reconcile(s.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		s.Fatal(err)
	}
	return result
}

func (s *scene) sizer(c client.Client) *Sizer         { return &Sizer{Client: c, Clock: s.now} }
func (s *scene) scheduler(c client.Client) *Scheduler { return &Scheduler{Client: c, Clock: s.now} }

// configure writes the sizes; they are gone after the test.
func (s *scene) configure(edit ...func(*schedulingv1alpha1.ClusterSizingConfiguration)) *schedulingv1alpha1.ClusterSizingConfiguration {
	s.Helper()
	g := NewWithT(s.T)
	v := &Validator{Client: s.c, Clock: s.now}
	key := client.ObjectKey{Name: sizing.ConfigurationName}
	config := &schedulingv1alpha1.ClusterSizingConfiguration{ObjectMeta: metav1.ObjectMeta{Name: sizing.ConfigurationName}}
	g.Expect(client.IgnoreNotFound(s.c.Delete(s.Context(), config))).To(Succeed())
	s.pass(s.c, v, key) // makes one
	g.Expect(s.c.Get(s.Context(), key, config)).To(Succeed())
	for _, e := range edit {
		e(config)
		g.Expect(s.c.Update(s.Context(), config)).To(Succeed())
	}
	s.Cleanup(func() { _ = s.c.Delete(context.Background(), config) })
	s.pass(s.c, v, key)
	g.Expect(s.c.Get(s.Context(), key, config)).To(Succeed())
	return config
}

func (s *scene) cluster(name string, nodes int32) *hyperv1.HostedCluster {
	s.Helper()
	g := NewWithT(s.T)
	hc := testenv.HostedCluster(s.ns, name)
	g.Expect(s.c.Create(s.Context(), hc)).To(Succeed())
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, Spec: hyperv1.NodePoolSpec{
		ClusterName: name, Replicas: &nodes, Release: hc.Spec.Release, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform},
		Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
	}}
	g.Expect(s.c.Create(s.Context(), pool)).To(Succeed())
	s.Cleanup(func() { // its change would count in other tests
		_ = s.c.Delete(context.Background(), pool)
		_ = s.c.Delete(context.Background(), hc)
	})
	return hc
}

func (s *scene) scale(name string, nodes int32) {
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	NewWithT(s.T).Expect(s.c.Patch(s.Context(), pool, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, nodes)))).To(Succeed())
}

func (s *scene) size(hc *hyperv1.HostedCluster) string {
	NewWithT(s.T).Expect(s.c.Get(s.Context(), client.ObjectKeyFromObject(hc), hc)).To(Succeed())
	return hc.Labels[hyperv1.HostedClusterSizeLabel]
}

func withEffects(config *schedulingv1alpha1.ClusterSizingConfiguration) {
	config.Spec.Sizes[1].Effects = &schedulingv1alpha1.Effects{KASGoMemLimit: "4GiB", MaximumRequestsInflight: ptr.To(5000)}
}

func TestValidator(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	config := s.configure()
	valid := func() *metav1.Condition {
		s.pass(s.c, &Validator{Client: s.c, Clock: s.now}, client.ObjectKeyFromObject(config))
		g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(config), config)).To(Succeed())
		return conditions.Get(config.Status.Conditions, schedulingv1alpha1.ClusterSizingConfigurationValidType)
	}
	g.Expect(valid().Status).To(Equal(metav1.ConditionTrue))
	g.Expect(config.Spec.TransitionDelay).To(Equal(schedulingv1alpha1.TransitionDelayConfiguration{Increase: metav1.Duration{Duration: 30 * time.Second}, Decrease: metav1.Duration{Duration: 10 * time.Minute}}), "defaults, and not 0s")
	g.Expect(config.Spec.Concurrency.SlidingWindow.Duration).To(Equal(10 * time.Minute))
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := (&Validator{Client: c, Clock: s.now}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
		return err
	})
	config.Spec.Sizes[1].Criteria.From = 13
	g.Expect(s.c.Update(t.Context(), config)).To(Succeed())
	g.Expect(valid().Status).To(Equal(metav1.ConditionFalse))
	g.Expect(valid().Reason).To(Equal(InvalidReason))
	g.Expect(valid().Message).To(ContainSubstring("is a gap: let medium begin at 11"))
	g.Expect(valid().ObservedGeneration).To(Equal(config.Generation))
}

func TestSizes(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	s.configure(withEffects)
	hc := s.cluster("demo", 3)
	key := client.ObjectKeyFromObject(hc)
	both := func() time.Duration {
		s.pass(s.c, s.scheduler(s.c), key)
		again := s.pass(s.c, s.sizer(s.c), key).RequeueAfter
		s.pass(s.c, s.scheduler(s.c), key)
		return again
	}
	both()
	g.Expect(s.size(hc)).To(Equal("small"))
	g.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterScheduledAnnotation, "true"))
	s.scale("demo", 40)
	g.Expect(both()).To(Equal(30 * time.Second))
	g.Expect(s.size(hc)).To(Equal("small"))
	g.Expect(conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionRequired).Reason).To(Equal("medium"))
	s.now.SetTime(s.now.Now().Add(30 * time.Second))
	g.Expect(both()).To(BeZero())
	g.Expect(s.size(hc)).To(Equal("medium"))
	g.Expect(conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeComputed).Reason).To(Equal("medium"))
	g.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.KubeAPIServerGOMemoryLimitAnnotation, "4GiB"))
	g.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.KubeAPIServerMaximumRequestsInFlight, "5000"))
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		for _, r := range []interface {
			Reconcile(context.Context, ctrl.Request) (ctrl.Result, error)
		}{s.sizer(c), s.scheduler(c)} {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				return err
			}
		}
		return nil
	})
	hc.Annotations[hyperv1.ClusterSizeOverrideAnnotation] = "small"
	g.Expect(s.c.Update(t.Context(), hc)).To(Succeed())
	both()
	g.Expect(s.size(hc)).To(Equal("small"), "an order needs no delay")
	g.Expect(hc.Annotations).NotTo(HaveKey(hyperv1.KubeAPIServerGOMemoryLimitAnnotation), "small has no such effect")
	hc.Annotations[hyperv1.ClusterSizeOverrideAnnotation], hc.Spec.PausedUntil = "large", ptr.To("true")
	g.Expect(s.c.Update(t.Context(), hc)).To(Succeed())
	both()
	g.Expect(s.size(hc)).To(Equal("small"), "a pause")
}

// A hosted cluster whose size nobody can tell says so, also a new one.
func TestSizeNotKnown(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	config := s.configure()
	hc := s.cluster("typo", 3)
	key := client.ObjectKeyFromObject(hc)
	condition := func(of string) metav1.Condition {
		s.pass(s.c, s.sizer(s.c), key)
		s.size(hc)
		return *conditions.Get(hc.Status.Conditions, of)
	}
	override := func(size string) {
		hc.Annotations = map[string]string{hyperv1.ClusterSizeOverrideAnnotation: size}
		g.Expect(s.c.Update(t.Context(), hc)).To(Succeed())
	}
	override("hgue")
	g.Expect(condition(hyperv1.ClusterSizeComputed)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", sizing.SizeNotKnown), HaveField("Message", ContainSubstring(`size "hgue"`))))
	g.Expect(s.size(hc)).To(BeEmpty())
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := s.sizer(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		return err
	})
	override("large")
	g.Expect(condition(hyperv1.ClusterSizeComputed)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "large")))
	override("hueg")
	g.Expect(condition(hyperv1.ClusterSizeTransitionPending)).To(And(HaveField("Reason", sizing.SizeNotKnown), HaveField("Message", ContainSubstring(`size "hueg"`))))
	override("huge")
	g.Expect(condition(hyperv1.ClusterSizeTransitionPending).Message).To(ContainSubstring(`size "huge"`))
	g.Expect(s.size(hc)).To(Equal("large"))

	config.Spec.Sizes[1].Criteria.From = 13
	g.Expect(s.c.Update(t.Context(), config)).To(Succeed())
	hc = s.cluster("invalid", 3)
	key = client.ObjectKeyFromObject(hc)
	g.Expect(condition(hyperv1.ClusterSizeComputed)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", sizing.SizeNotKnown),
		HaveField("Message", ContainSubstring("ClusterSizingConfiguration cluster is not valid: "))))
}

// Fewer change at a time than would.
func TestTurns(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	s.configure(func(config *schedulingv1alpha1.ClusterSizingConfiguration) {
		config.Spec.Concurrency.Limit, config.Spec.Concurrency.SlidingWindow.Duration = 2, 10*time.Minute
	})
	var clusters []*hyperv1.HostedCluster
	for i := range 6 {
		clusters = append(clusters, s.cluster(fmt.Sprintf("c%d", i), 1))
	}
	all := func() (medium int) {
		for _, hc := range clusters {
			s.pass(s.c, s.sizer(s.c), client.ObjectKeyFromObject(hc))
			s.pass(s.c, s.scheduler(s.c), client.ObjectKeyFromObject(hc))
		}
		for _, hc := range clusters {
			if s.size(hc) == "medium" {
				medium++
			}
		}
		return medium
	}
	g.Expect(all()).To(Equal(0))
	s.now.SetTime(s.now.Now().Add(time.Hour))
	for i := range clusters {
		s.scale(fmt.Sprintf("c%d", i), 50)
		s.now.SetTime(s.now.Now().Add(time.Second))
		s.pass(s.c, s.sizer(s.c), client.ObjectKeyFromObject(clusters[i]))
	}
	s.now.SetTime(s.now.Now().Add(time.Minute))
	for want := 2; want <= 6; want += 2 {
		g.Expect(all()).To(Equal(want))
		g.Expect(all()).To(Equal(want))
		s.now.SetTime(s.now.Now().Add(10*time.Minute + time.Second))
	}
}

func TestCrash(t *testing.T) {
	s := newScene(t)
	s.configure(withEffects)
	n := 0
	testenv.CrashAtEveryWrite(t, 1, func(t testing.TB) testenv.CrashCase {
		n++
		hc := s.cluster(fmt.Sprintf("crash%d", n), 40)
		key := client.ObjectKeyFromObject(hc)
		return testenv.CrashCase{
			Client: s.c,
			Run: func(c client.WithWatch) error {
				for range 3 {
					if _, err := s.sizer(c).Reconcile(s.Context(), ctrl.Request{NamespacedName: key}); err != nil {
						return err
					}
					if _, err := s.scheduler(c).Reconcile(s.Context(), ctrl.Request{NamespacedName: key}); err != nil {
						return err
					}
				}
				return nil
			},
			Check: func(t testing.TB) {
				g := NewWithT(t)
				g.Expect(s.size(hc)).To(Equal("medium"))
				g.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.KubeAPIServerGOMemoryLimitAnnotation, "4GiB"))
			},
		}
	})
}

// The controllers in a manager, with its caches and watches.
func TestManager(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	mgr, err := ctrl.NewManager(testenv.Start(t).Config, ctrl.Options{Scheme: s.c.Scheme(), Controller: process.Queue(), Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Add(mgr, operator.Shared{Clock: clock.RealClock{}})).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
		_ = s.c.Delete(context.Background(), &schedulingv1alpha1.ClusterSizingConfiguration{ObjectMeta: metav1.ObjectMeta{Name: sizing.ConfigurationName}})
	})
	config := &schedulingv1alpha1.ClusterSizingConfiguration{}
	g.Eventually(func() error { return s.c.Get(ctx, client.ObjectKey{Name: sizing.ConfigurationName}, config) }, time.Minute).Should(Succeed(), "the first sizes are made")
	g.Eventually(func() error { // the validator writes it, too
		if err := s.c.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		withEffects(config)
		config.Spec.TransitionDelay.Increase.Duration = time.Second
		return s.c.Update(ctx, config)
	}, time.Minute).Should(Succeed())
	hc := s.cluster("managed", 3)
	g.Eventually(func() string { return s.size(hc) }, time.Minute).Should(Equal("small"))
	s.scale("managed", 40)
	g.Eventually(func() string { return s.size(hc) }, time.Minute).Should(Equal("medium"))
	g.Eventually(func() map[string]string { s.size(hc); return hc.Annotations }, time.Minute).Should(HaveKeyWithValue(hyperv1.KubeAPIServerGOMemoryLimitAnnotation, "4GiB"))
}
