package hostedcluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/testenv"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

func controlPlane(deleted *metav1.Time) *hyperv1.HostedControlPlane {
	return &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", DeletionTimestamp: deleted,
		Finalizers: []string{hyperv1.HostedControlPlaneFinalizer}}}
}

func operatorDeployment(available int32) *appsv1.Deployment {
	return &appsv1.Deployment{Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
}

// endingIn is a pod with a grace period in seconds; nil is one that is not being deleted yet.
func endingIn(seconds *int64) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "p", DeletionGracePeriodSeconds: seconds}}
}

// toldToEnd is a pod that should have ended a second after that.
func toldToEnd(at time.Time) metav1.PartialObjectMetadata {
	pod := endingIn(ptr.To[int64](1))
	pod.DeletionTimestamp = &metav1.Time{Time: at.Add(time.Second)}
	return pod
}

func TestPlanTeardown(t *testing.T) {
	hc := hostedclustertest.Example("clusters", "x")
	ours := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}
	terminating := ours.DeepCopy()
	terminating.DeletionTimestamp = ago(time.Minute)
	terminating.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: pods. has 1 resource instances"}}
	pool := hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "np"}}

	for name, tc := range map[string]struct {
		left    remains
		deletes int
		strips  bool
		hurries int
		empties bool
		waits   string // empty: nothing is left
	}{
		"When nothing is left it should be done":                    {left: remains{}},
		"When there are NodePools it should delete them first":      {left: remains{pools: []hyperv1.NodePool{pool}, hcp: controlPlane(nil), namespace: ours}, deletes: 1, waits: "NodePool clusters/np"},
		"When the control plane lives it should delete it":          {left: remains{hcp: controlPlane(nil), namespace: ours}, deletes: 1, waits: "HostedControlPlane clusters-demo/demo"},
		"When the operator works it should be given time":           {left: remains{hcp: controlPlane(ago(10 * time.Second)), operator: operatorDeployment(1), contained: true}, waits: "being deleted since 2026-01-02T11:59:50Z (the control-plane-operator removes its finalizer"},
		"When the operator works but is stuck it should go on":      {left: remains{hcp: controlPlane(ago(operatorStuck)), operator: operatorDeployment(1), contained: true}, strips: true, waits: "HostedControlPlane"},
		"When the operator does not run it should wait a moment":    {left: remains{hcp: controlPlane(ago(3 * time.Second)), operator: operatorDeployment(0), contained: true}, waits: "does not run, so its finalizer is removed soon"},
		"When the operator does not run for long it should go on":   {left: remains{hcp: controlPlane(ago(operatorDown)), operator: operatorDeployment(0), contained: true}, strips: true, waits: "HostedControlPlane"},
		"When there is no operator it should go on soon":            {left: remains{hcp: controlPlane(ago(operatorGone)), contained: true}, strips: true, waits: "HostedControlPlane"},
		"When things lie outside the namespace it should only wait": {left: remains{hcp: controlPlane(ago(time.Hour))}, waits: "HostedControlPlane"},
		"When only the namespace is left it should delete it":       {left: remains{namespace: ours}, deletes: 1, empties: true, waits: "Namespace clusters-demo"},
		"When pods are left in it they should end before the namespace is deleted": {left: remains{namespace: ours, contained: true,
			pods: []metav1.PartialObjectMetadata{endingIn(nil), endingIn(ptr.To[int64](1))}}, empties: true, hurries: 1, waits: "pods p, p to end"},
		"When pods that were told to end do not it should delete the namespace all the same": {left: remains{namespace: ours, contained: true,
			pods: []metav1.PartialObjectMetadata{toldToEnd(noon.Add(-time.Minute))}}, empties: true, deletes: 1, waits: "Namespace clusters-demo"},
		"When the namespace is going it should say what is left in it": {left: remains{namespace: terminating}, waits: "Some resources are remaining: pods"},
		"When pods end slowly it should not give them that long": {left: remains{namespace: terminating, contained: true,
			pods: []metav1.PartialObjectMetadata{endingIn(nil), endingIn(ptr.To[int64](135)), endingIn(ptr.To[int64](1))}}, hurries: 2, waits: "Namespace clusters-demo"},
		"When things lie outside the namespace its pods should have their time": {left: remains{namespace: terminating,
			pods: []metav1.PartialObjectMetadata{endingIn(ptr.To[int64](135))}}, waits: "Namespace clusters-demo"},
		"When the namespace is not ours it should leave it alone": {left: remains{namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo"}}}},
		"When the namespace shall stay it should leave it alone": {left: remains{namespace: ours, hc: hostedclustertest.Example("clusters", "x", func(hc *hyperv1.HostedCluster) {
			hc.Annotations[hyperv1.SkipControlPlaneNamespaceDeletionAnnotation] = "true"
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.left.hc == nil {
				tc.left.hc = hc
			}
			got := planTeardown(tc.left, noon)
			g.Expect(got.delete).To(HaveLen(tc.deletes))
			g.Expect(got.hurry).To(HaveLen(tc.hurries))
			g.Expect(got.empty).To(Equal(tc.empties))
			g.Expect(got.stripFinalizers).To(Equal(tc.strips))
			g.Expect(got.done()).To(Equal(tc.waits == ""))
			g.Expect(fmt.Sprint(got.waiting)).To(ContainSubstring(tc.waits))
		})
	}
}

// A deletion on a contained platform ends for every history of its operator: whatever is left, some move follows that does not depend on it.
func TestTeardownEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := remains{hc: hostedclustertest.Example("clusters", "x"), contained: true, hcp: controlPlane(nil),
			namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}}
		now := noon
		for range 100 {
			switch rapid.IntRange(0, 2).Draw(t, "operator") {
			case 0:
				left.operator = nil
			case 1:
				left.operator = operatorDeployment(0)
			case 2:
				left.operator = operatorDeployment(1)
			}
			next := planTeardown(left, now)
			if next.done() {
				if now.Sub(noon) > time.Minute {
					t.Fatalf("took %v", now.Sub(noon))
				}
				return
			}
			for _, obj := range next.delete {
				switch obj.(type) {
				case *hyperv1.HostedControlPlane:
					left.hcp.DeletionTimestamp = &metav1.Time{Time: now}
				case *corev1.Namespace:
					left.namespace = nil
				}
			}
			if next.stripFinalizers {
				left.hcp = nil
			}
			now = now.Add(next.recheckAfter)
		}
		t.Fatal("the deletion does not end")
	})
}

func TestDeletion(t *testing.T) {
	gone := func(g Gomega, t testing.TB, w *world) {
		g.Expect(w.missing(t.Context(), &hyperv1.HostedCluster{}, w.ns, "demo")()).To(Succeed())
		g.Expect(w.missing(t.Context(), &corev1.Namespace{}, "", w.ns+"-demo")()).To(Succeed())
		roles := &rbacv1.ClusterRoleList{}
		g.Expect(w.client.List(t.Context(), roles, client.MatchingLabels{OwnerNamespaceLabel: w.ns})).To(Succeed())
		g.Expect(roles.Items).To(BeEmpty())
		secret := &corev1.Secret{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "pull"}, secret)).To(Succeed())
		g.Expect(secret.Annotations).To(BeEmpty())
	}
	// expectGone: nothing is left by the time at which the HostedCluster is gone.
	expectGone := func(t testing.TB, w *world) {
		g := NewWithT(t)
		g.Eventually(w.missing(t.Context(), &hyperv1.HostedCluster{}, w.ns, "demo"), patience, often).Should(Succeed())
		gone(g, t, w)
	}
	deleteCluster := func(t testing.TB, w *world) {
		NewWithT(t).Expect(w.client.Delete(t.Context(), w.hostedCluster())).To(Succeed())
	}

	// Beside each other, for most of it is waiting for the controller of namespaces.
	t.Run("When a cluster is deleted whose operator never ran it should be gone within seconds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env.StartControllers(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.hostedCluster())).To(Succeed())
		g.Eventually(w.condition(ctx, "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		// As the control-plane-operator does before it makes anything.
		g.Expect(w.client.Patch(ctx, &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-demo", Name: "demo"}},
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["hypershift.openshift.io/finalizer"]}}`)))).To(Succeed())
		g.Expect(w.client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-csr", Labels: map[string]string{OwnerNamespaceLabel: w.ns, OwnerNameLabel: "demo"}}})).To(Succeed())
		begin := time.Now()
		deleteCluster(t, w)
		g.Eventually(w.condition(ctx, "demo", hyperv1.HostedClusterDestroyed), patience, often).Should(Equal("False/WaitingForDependents"))
		expectGone(t, w)
		t.Logf("gone after %v", time.Since(begin))
	})

	t.Run("When a cluster is deleted in the very moment of its creation it should be gone within seconds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env.StartControllers(t)
		w.start(t)
		g := NewWithT(t)
		for _, delay := range []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
			g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
			timer := time.NewTimer(delay)
			<-timer.C
			deleteCluster(t, w)
			// The HostedCluster may be the first to go: see adoptions.
			g.Eventually(func(g Gomega) { gone(g, t, w) }, patience, often).Should(Succeed())
		}
	})

	t.Run("When somebody makes pods for ever in its namespace it should be gone all the same", func(t *testing.T) {
		w := newWorld(t)
		w.env.StartControllers(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.hostedCluster())).To(Succeed())
		g.Eventually(w.condition(ctx, "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		g.Expect(w.client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-demo", Name: "default"}})).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
		deleteCluster(t, w)
		refused := 0
		g.Eventually(func() error {
			err := w.client.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-demo", GenerateName: "add-on-"},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}})
			if apierrors.IsForbidden(err) {
				refused++
			}
			return w.missing(ctx, &hyperv1.HostedCluster{}, w.ns, "demo")()
		}, patience, often).Should(Succeed())
		g.Expect(refused).To(BeNumerically(">", 0))
		gone(g, t, w)
	})

	t.Run("When there is a grace period it should keep the object that long", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env.StartControllers(t)
		w.start(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), w.hostedCluster(func(hc *hyperv1.HostedCluster) {
			hc.Annotations[hyperv1.HCDestroyGracePeriodAnnotation] = "3s"
		}))).To(Succeed())
		g.Eventually(w.condition(t.Context(), "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		deleteCluster(t, w)
		g.Eventually(w.condition(t.Context(), "demo", hyperv1.HostedClusterDestroyed), patience, often).Should(Equal("True/WaitingForGracePeriod"))
		g.Expect(w.missing(t.Context(), &corev1.Namespace{}, "", w.ns+"-demo")()).To(Succeed())
		expectGone(t, w)
	})

	t.Run("When the cluster has NodePools it should delete them", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env.StartControllers(t)
		w.start(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
		np := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "np"}, Spec: hyperv1.NodePoolSpec{
			ClusterName: "demo", Release: hyperv1.Release{Image: w.image}, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform},
			Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
		}}
		g.Expect(w.client.Create(t.Context(), np)).To(Succeed())
		g.Eventually(w.condition(t.Context(), "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		deleteCluster(t, w)
		expectGone(t, w)
		g.Expect(w.missing(t.Context(), np, w.ns, "np")()).To(Succeed())
	})
}

// finishNamespace does what the namespace controller does five seconds after a namespace is deleted.
func (w *world) finishNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil || ns.DeletionTimestamp.IsZero() {
		return client.IgnoreNotFound(err)
	}
	ns.Spec.Finalizers = nil
	return client.IgnoreNotFound(w.client.SubResource("finalize").Update(ctx, ns))
}

func TestDeletionCrashAtEveryWrite(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(Succeed())
		g.Expect(w.client.Delete(t.Context(), w.hostedCluster())).To(Succeed())
		return testenv.CrashCase{
			Client: w.client,
			Run: func(c client.WithWatch) error {
				return wait.PollUntilContextTimeout(t.Context(), often, patience, true, func(ctx context.Context) (bool, error) {
					_, err := w.reconciler(c).Reconcile(ctx, w.request("demo"))
					if err == nil {
						err = w.finishNamespace(ctx, w.ns+"-demo")
					}
					return w.missing(ctx, &hyperv1.HostedCluster{}, w.ns, "demo")() == nil, err
				})
			},
			Check: func(t testing.TB) {
				g := NewWithT(t)
				g.Expect(w.missing(t.Context(), &hyperv1.HostedCluster{}, w.ns, "demo")()).To(Succeed())
				g.Expect(w.missing(t.Context(), &corev1.Namespace{}, "", w.ns+"-demo")()).To(Succeed())
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}
