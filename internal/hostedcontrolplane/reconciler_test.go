package hostedcontrolplane

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/testenv"
)

func condition(hcp *hyperv1.HostedControlPlane, kind string) string {
	c := conditions.Get(hcp.Status.Conditions, kind)
	if c == nil {
		return "missing"
	}
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

//nolint:staticcheck // because old readers read the fields that are deprecated
func TestReconcilePasses(t *testing.T) {
	t.Run("When nothing exists it should bring up a control plane that is available, and then write nothing", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(w.c)).To(Succeed())
		hcp := w.read()
		g.Expect(condition(hcp, "Available")).To(Equal("True AsExpected All is well"))
		g.Expect(condition(hcp, "Degraded")).To(HavePrefix("False AsExpected"))
		g.Expect(condition(hcp, "ClusterVersionProgressing")).To(HavePrefix("False"))
		g.Expect(hcp.Status.Ready).To(BeTrue())
		g.Expect(hcp.Status.ControlPlaneEndpoint).To(Equal(hyperv1.APIEndpoint{Host: "10.97.0.1", Port: 6443}))
		g.Expect(string(hcp.Status.ControlPlaneVersion.History[0].State)).To(Equal("Completed"))
		g.Expect(hcp.Status.Version).To(Equal("1.36.3"))
		g.Expect(hcp.Finalizers).To(ContainElement(Finalizer))
		for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "hosted-cluster-config-operator"} {
			g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: hcp.Namespace, Name: name}, &appsv1.Deployment{})).To(Succeed(), name)
		}
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error {
			result, err := w.pass(c)
			g.Expect(result.RequeueAfter).To(Equal(recheckReady))
			return err
		})
	})

	t.Run("When the load balancer has no address it should wait, with certificates made and no workload started", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.address = ""
		g.Expect(w.settle(w.c)).To(Succeed())
		hcp := w.read()
		missing := "False WaitingOnInfrastructureReady load balancer of service " + hcp.Namespace + "/kube-apiserver has no address yet"
		g.Expect(condition(hcp, "InfrastructureReady")).To(Equal(missing))
		g.Expect(condition(hcp, "Available")).To(Equal(missing))
		g.Expect(condition(hcp, "EtcdAvailable")).To(HavePrefix("False StatefulSetNotFound"))
		g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: hcp.Namespace, Name: pki.EtcdServer}, &corev1.Secret{})).To(Succeed())
		g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: hcp.Namespace, Name: "data-etcd-0"}, &corev1.PersistentVolumeClaim{})).To(Succeed(), "storage need not wait")
		w.address = "10.97.0.9"
		g.Expect(w.settle(w.c)).To(Succeed())
		g.Expect(condition(w.read(), "Available")).To(HavePrefix("True"))
	})

	t.Run("When the release is another's it should leave everything alone", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		r := w.reconciler(w.c)
		r.OperateOn = "10.244.0.1:5000/hypershift/release:1.35.1"
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error {
			r.Client = c
			_, err := r.Reconcile(t.Context(), requestFor(w.hcp))
			return err
		})
		g.Expect(w.read().Finalizers).To(BeEmpty())
	})

	t.Run("When it is paused it should report, change nothing, and go on at the end of the pause", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		until := w.clock.Now().Add(10 * time.Minute).Truncate(time.Second)
		w.update(func(h *hyperv1.HostedControlPlane) { h.Spec.PausedUntil = ptr.To(until.UTC().Format(time.RFC3339)) })
		result, err := w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(BeNumerically("~", 10*time.Minute, 2*time.Second))
		g.Expect(condition(w.read(), "ReconciliationActive")).To(HavePrefix("False ReconciliationPaused"))
		err = w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: pki.RootCA}, &corev1.Secret{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error { _, err := w.pass(c); return err })
		w.clock.SetTime(until.Add(time.Second))
		g.Expect(w.settle(w.c)).To(Succeed())
		g.Expect(condition(w.read(), "ReconciliationActive")).To(HavePrefix("True"))
	})

	t.Run("When a Route is asked for it should say what to use instead and heal when that is done", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, func(h *hyperv1.HostedControlPlane) {
			h.Spec.Services[3].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		})
		g.Expect(w.settle(w.c)).To(Succeed())
		g.Expect(condition(w.read(), "ValidHostedControlPlaneConfiguration")).To(HavePrefix("False InsufficientClusterCapabilities service Ignition is published by Route"))
		w.update(func(h *hyperv1.HostedControlPlane) {
			h.Spec.Services[3].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.None}
		})
		g.Expect(w.settle(w.c)).To(Succeed())
		g.Expect(condition(w.read(), "Available")).To(HavePrefix("True"))
	})

	t.Run("When the registry does not answer it should keep what runs, say so, and go on when it does", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(w.c)).To(Succeed())
		w.lookup = errBroken
		_, err := w.pass(w.c)
		g.Expect(err).To(MatchError(errBroken))
		hcp := w.read()
		g.Expect(condition(hcp, "ValidReleaseInfo")).To(HavePrefix("Unknown StatusUnknown"))
		g.Expect(condition(hcp, "Available")).To(HavePrefix("True"))
		w.lookup = nil
		g.Expect(w.settle(w.c)).To(Succeed())
		g.Expect(condition(w.read(), "ValidReleaseInfo")).To(HavePrefix("True"))
	})

	t.Run("When the pull secret is missing it should wait for it", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "pull-secret"}})).To(Succeed())
		_, err := w.pass(w.c)
		g.Expect(err).To(MatchError(ContainSubstring("waiting for pull secret " + w.hcp.Namespace + "/pull-secret")))
	})

	t.Run("When the release changes it should move to it and record both", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, func(h *hyperv1.HostedControlPlane) { h.Spec.ReleaseImage = "10.244.0.1:5000/hypershift/release:1.35.1" })
		g.Expect(w.settle(w.c)).To(Succeed())
		w.update(func(h *hyperv1.HostedControlPlane) { h.Spec.ReleaseImage = "10.244.0.1:5000/hypershift/release:1.36.3" })
		_, err := w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(condition(w.read(), "ClusterVersionProgressing")).To(And(HavePrefix("True FromClusterVersion Working towards 1.36.3: waiting for "), ContainSubstring("etcd")))
		g.Expect(condition(w.read(), "Available")).To(HavePrefix("True"))
		g.Expect(w.settle(w.c)).To(Succeed())
		var got []string
		for _, h := range w.read().Status.VersionStatus.History {
			got = append(got, string(h.State)+" "+h.Version)
		}
		g.Expect(got).To(Equal([]string{"Completed 1.36.3", "Completed 1.35.1"}))
	})

	t.Run("When certificates are due it should renew them and leave authorities and keys alone", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		g.Expect(w.settle(w.c)).To(Succeed())
		before := w.secrets()
		w.clock.SetTime(w.clock.Now().Add(340 * 24 * time.Hour))
		g.Expect(w.settle(w.c)).To(Succeed())
		after := w.secrets()
		for _, name := range []string{pki.RootCA, pki.EtcdSigner, pki.ClusterSigner, names.ServiceAccountKey} {
			g.Expect(after[name].ResourceVersion).To(Equal(before[name].ResourceVersion), name)
		}
		for _, name := range []string{pki.KASServer, pki.EtcdPeer, pki.HCCOClient, pki.AdminKubeconfig} {
			g.Expect(after[name].ResourceVersion).NotTo(Equal(before[name].ResourceVersion), name)
		}
	})

	t.Run("When the user keeps certificates himself it should make none", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, func(h *hyperv1.HostedControlPlane) {
			h.Annotations = map[string]string{hyperv1.DisablePKIReconciliationAnnotation: "true"}
		})
		g.Expect(w.settle(w.c)).To(Succeed())
		g.Expect(w.secrets()).To(HaveLen(1), "only the pull secret")
	})

	t.Run("When it is deleted it should let go at once, also while paused and with nothing else alive", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		_, err := w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		w.update(func(h *hyperv1.HostedControlPlane) { h.Spec.PausedUntil = ptr.To("true") })
		w.lookup, w.answer = errBroken, nil
		g.Expect(w.c.Delete(t.Context(), w.read())).To(Succeed())
		_, err = w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), &hyperv1.HostedControlPlane{}))).To(BeTrue())
		_, err = w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred(), "a pass for an object that is gone")
	})
}

func (w *world) secrets() map[string]*corev1.Secret {
	w.t.Helper()
	var list corev1.SecretList
	if err := w.c.List(w.t.Context(), &list, client.InNamespace(w.hcp.Namespace)); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]*corev1.Secret{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

//nolint:staticcheck // because old readers read the fields that are deprecated
func TestCrashes(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		return testenv.CrashCase{
			Client: w.c,
			Run:    w.settle,
			Check: func(t testing.TB) {
				g := NewWithT(t)
				hcp := w.read()
				g.Expect(condition(hcp, "Available")).To(HavePrefix("True"))
				g.Expect(hcp.Status.Version).To(Equal("1.36.3"))
				g.Expect(slices.Sorted(keysOf(w.secrets()))).To(Equal(expectedSecrets))
				testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error { _, err := w.pass(c); return err })
			},
		}
	}
	testenv.CrashAtEveryWrite(t, crashStep, fresh)
	testenv.Storm(t, 1, fresh)
}
