package hostedcluster

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

func TestDeletion(t *testing.T) {
	gone := func(g Gomega, t testing.TB, w *world) {
		g.Expect(w.missing(t.Context(), &hyperv1.HostedCluster{}, w.ns, "demo")()).To(Succeed())
		g.Expect(w.missing(t.Context(), &corev1.Namespace{}, "", w.ns+"-demo")()).To(Succeed())
		roles := &rbacv1.ClusterRoleList{}
		g.Expect(w.client.List(t.Context(), roles, client.MatchingLabels{names.OwnerNamespaceLabel: w.ns})).To(Succeed())
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
		g.Expect(w.client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-csr", Labels: map[string]string{names.OwnerNamespaceLabel: w.ns, names.OwnerNameLabel: "demo"}}})).To(Succeed())
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
		makePod := func() error {
			return w.client.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-demo", GenerateName: "add-on-"}, Spec: restricted(corev1.PodSpec{})})
		}
		g.Eventually(makePod, patience, often).Should(Succeed(), "nothing but the deletion may refuse it")
		deleteCluster(t, w)
		refused := 0
		g.Eventually(func() error {
			if apierrors.IsForbidden(makePod()) {
				refused++
			}
			return w.missing(ctx, &hyperv1.HostedCluster{}, w.ns, "demo")()
		}, patience, often).Should(Succeed())
		g.Expect(refused).To(BeNumerically(">", 0))
		gone(g, t, w)
	})

	t.Run("When a pod takes longer to end than the controller of namespaces waits it should be gone soon after the pod", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env.StartControllers(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.hostedCluster())).To(Succeed())
		g.Eventually(w.condition(ctx, "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		g.Expect(w.client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-demo", Name: "default"}})).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
		// Nobody but us ends it: it is on a node that there is not.
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-demo", Name: "lingering"},
			Spec: restricted(corev1.PodSpec{NodeName: "nowhere", TerminationGracePeriodSeconds: ptr.To[int64](135)})}
		g.Expect(w.client.Create(ctx, pod)).To(Succeed())
		deleteCluster(t, w)
		begin := time.Now()
		g.Eventually(func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			g.Expect(pod.DeletionGracePeriodSeconds).To(HaveValue(BeEquivalentTo(1)), "it was told how little time it has")
			ns := &corev1.Namespace{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Name: pod.Namespace}, ns)).To(Succeed())
			g.Expect(ns.DeletionTimestamp.IsZero()).To(BeFalse())
			g.Expect(ns.Status.Conditions).NotTo(BeEmpty(), "the controller has looked")
		}, patience, often).Should(Succeed())
		t.Logf("the controller of namespaces looked after %v", time.Since(begin))
		g.Expect(w.client.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		expectGone(t, w)
		t.Logf("gone after %v", time.Since(begin))
	})

	t.Run("When there is a grace period it should keep the object that long, and no longer when the period is made shorter", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env.StartControllers(t)
		w.start(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), w.hostedCluster(func(hc *hyperv1.HostedCluster) {
			hc.Annotations[hyperv1.HCDestroyGracePeriodAnnotation] = "1h"
		}))).To(Succeed())
		g.Eventually(w.condition(t.Context(), "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(HavePrefix("True/"))
		deleteCluster(t, w)
		g.Eventually(w.condition(t.Context(), "demo", hyperv1.HostedClusterDestroyed), patience, often).Should(Equal("True/WaitingForGracePeriod"))
		g.Expect(w.missing(t.Context(), &corev1.Namespace{}, "", w.ns+"-demo")()).To(Succeed())
		shorter := patch.Annotation(hyperv1.HCDestroyGracePeriodAnnotation, ptr.To("1s"))
		g.Expect(w.client.Patch(t.Context(), w.hostedCluster(), shorter)).To(Succeed())
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

// restricted gives a pod one container, and what the namespace of a control plane asks of pods.
func restricted(spec corev1.PodSpec) corev1.PodSpec {
	spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	spec.Containers = []corev1.Container{{Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}}}
	return spec
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
	testenv.CrashAtEveryWrite(t, 3, fresh) // each write meets one kind of fault
	testenv.Storm(t, 2, fresh)
}
