package fleet

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/placement"
	"hcp.internal/platform/internal/testenv"
)

// claimOf is the claim of a pair, nil when there is none.
func (s *scene) claimOf(pair string) *corev1.ConfigMap {
	list := &corev1.ConfigMapList{}
	NewWithT(s.T).Expect(s.c.List(s.Context(), list, client.InNamespace(placement.Namespace), client.MatchingLabels{pairLabel: pair})).To(Succeed())
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// A pair may have any name that is the value of a label.
func TestNamesOfPairs(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	s.configure()
	s.nodes("Pair_A", "small")
	hc := s.dedicated("capital", 3)
	key := client.ObjectKeyFromObject(hc)
	s.pass(s.c, s.sizer(s.c), key)
	s.pass(s.c, s.placer(s.c), key)
	g.Expect(s.owned(hc)).To(HaveLen(2))
	g.Expect(s.claimOf("Pair_A")).NotTo(BeNil())
	g.Expect(s.claimOf("Pair_A").Name).To(HavePrefix("pair-a-"))
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := s.placer(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		return err
	})
	g.Expect(s.c.Delete(t.Context(), hc)).To(Succeed())
	s.pass(s.c, s.placer(s.c), key)
	g.Expect(s.owned(hc)).To(BeEmpty())
	g.Expect(s.claimOf("Pair_A")).To(BeNil())
}

// The operator ends between two writes of a release, or while a cluster goes.
func TestOrphans(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	s.configure()
	s.nodes("orphan", "small")
	released := make(chan event.GenericEvent, 1)
	placer := func(c client.Client) *Scheduler { p := s.placer(c); p.Image, p.Released = image, released; return p }
	orphans := func() []client.ObjectKey {
		keys, err := placer(s.c).orphans(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		return keys
	}
	has, lacks := s.dedicated("has", 3), s.dedicated("lacks", 3)
	for _, hc := range []*hyperv1.HostedCluster{has, lacks} {
		s.pass(s.c, s.sizer(s.c), client.ObjectKeyFromObject(hc))
		s.pass(s.c, placer(s.c), client.ObjectKeyFromObject(hc))
	}
	g.Expect(s.owned(has)).To(HaveLen(2))
	g.Expect(s.placeholders()).To(HaveKey(names.NamespaceOf(lacks)))
	g.Expect(orphans()).To(BeEmpty(), "both are there")

	g.Expect(s.c.Delete(t.Context(), has)).To(Succeed())
	g.Expect(s.c.Delete(t.Context(), lacks)).To(Succeed())
	nodes := &corev1.NodeList{}
	g.Expect(s.c.List(t.Context(), nodes, client.MatchingLabels{placement.ClusterLabel: names.NamespaceOf(has)})).To(Succeed())
	for i := range nodes.Items {
		g.Expect(placer(s.c).give(t.Context(), &nodes.Items[i], nil)).To(Succeed())
	}
	g.Expect(s.claimOf("orphan")).NotTo(BeNil())
	g.Expect(orphans()).To(ConsistOf(client.ObjectKeyFromObject(has), client.ObjectKeyFromObject(lacks)))
	g.Expect(released).NotTo(Receive())
	for _, key := range orphans() {
		s.pass(s.c, placer(s.c), key)
	}
	g.Expect(s.claimOf("orphan")).To(BeNil())
	g.Expect(s.placeholders()).NotTo(HaveKey(names.NamespaceOf(lacks)))
	g.Expect(orphans()).To(BeEmpty())
	g.Expect(released).To(Receive(), "whoever keeps pairs warm has to know")
}

// When the cache has no cluster that is there it should keep what it has: another operator may have given it that.
func TestNotGone(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	s.configure()
	s.nodes("kept", "small")
	hc := s.dedicated("kept", 3)
	key := client.ObjectKeyFromObject(hc)
	s.pass(s.c, s.sizer(s.c), key)
	s.pass(s.c, s.placer(s.c), key)
	old := s.placer(s.c)
	old.Client = without{s.c, key}
	s.pass(s.c, old, key)
	g.Expect(s.owned(hc)).To(HaveLen(2))
	g.Expect(old.orphans(t.Context())).To(BeEmpty())
}

// without is a cache that has not seen a HostedCluster yet.
type without struct {
	client.Client
	key client.ObjectKey
}

func (w without) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*hyperv1.HostedCluster); ok && key == w.key {
		key.Name = "none"
	}
	return w.Client.Get(ctx, key, obj, opts...)
}

// In a manager: what was left before it began is found, and pairs that were given back are for those that come next.
func TestGivenBack(t *testing.T) {
	g, s := NewWithT(t), newScene(t)
	s.configure(func(c *schedulingv1alpha1.ClusterSizingConfiguration) {
		c.Spec.Sizes[0].Management = &schedulingv1alpha1.Management{Placeholders: 1}
	})
	t.Cleanup(func() {
		_ = s.c.DeleteAllOf(context.Background(), &appsv1.Deployment{}, client.InNamespace(placement.Namespace))
	})
	g.Expect(s.placer(s.c).claim(t.Context(), testenv.HostedCluster(s.ns, "left"), "left")).To(Succeed())
	mgr, err := ctrl.NewManager(testenv.Start(t).Config, ctrl.Options{Scheme: s.c.Scheme(), Controller: process.Queue(), Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Add(mgr, operator.Shared{Clock: clock.RealClock{}, DedicatedNodes: true, OperatorImage: image})).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	g.Eventually(func() *corev1.ConfigMap { return s.claimOf("left") }, time.Minute).Should(BeNil())

	s.nodes("back", "small")
	hc := testenv.HostedCluster(s.ns, "back")
	hc.Annotations = map[string]string{hyperv1.TopologyAnnotation: hyperv1.DedicatedRequestServingComponentsTopology}
	g.Expect(s.c.Create(ctx, hc)).To(Succeed())
	avoided := func() (pairs []string) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: placement.Namespace, Name: "placeholder-small-0"}}
		if s.c.Get(ctx, client.ObjectKeyFromObject(d), d) != nil || d.Spec.Template.Spec.Affinity.NodeAffinity == nil {
			return nil
		}
		return d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values
	}
	g.Eventually(avoided, time.Minute).Should(ContainElement("back"))
	g.Expect(s.c.Delete(ctx, hc)).To(Succeed())
	g.Eventually(avoided, time.Minute).ShouldNot(ContainElement("back"))
	g.Expect(s.claimOf("back")).To(BeNil())
}
