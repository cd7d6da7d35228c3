package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/netpolicy"
	"hcp.internal/platform/internal/testenv"
)

// expectControlPlane asserts the end state of an undisturbed reconcile.
func (w *world) expectControlPlane(t testing.TB, name string) {
	g := NewWithT(t)
	ctx := t.Context()
	hc, err := w.get(ctx, name)
	g.Expect(err).NotTo(HaveOccurred())
	hcpNS := names.ControlPlaneNamespace(w.ns, name)
	g.Expect(hc.Finalizers).To(ContainElement(hyperv1.HostedClusterFinalizer))
	g.Expect(hc.Spec.InfraID).To(Equal(name + "-abcde"))
	g.Expect(hc.Spec.ClusterID).NotTo(BeEmpty())
	g.Expect(conditions.IsTrue(hc.Status.Conditions, hyperv1.ReconciliationSucceeded)).To(BeTrue(), w.message(ctx, name, hyperv1.ReconciliationSucceeded))

	ns := &corev1.Namespace{}
	g.Expect(w.client.Get(ctx, client.ObjectKey{Name: hcpNS}, ns)).To(Succeed())
	g.Expect(ns.Annotations).To(And(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, w.ns+"/"+name), HaveKey(hyperv1.DefaultSecurityContextUIDAnnotation)))
	g.Expect(ns.Labels).To(And(HaveKeyWithValue(hyperv1.HostedControlPlaneLabel, "true"), HaveKeyWithValue(hyperv1.PodSecurityEnforceLabel, "restricted"),
		HaveKeyWithValue("security.openshift.io/scc.podSecurityLabelSync", "false"), HaveKeyWithValue("hypershift.openshift.io/monitoring", "true")))

	hcp := &hyperv1.HostedControlPlane{}
	g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: hcpNS, Name: name}, hcp)).To(Succeed())
	g.Expect(hcp.Spec.ReleaseImage).To(Equal(hc.Spec.Release.Image))
	g.Expect(hcp.Spec.InfraID).To(Equal(hc.Spec.InfraID))

	secret := &corev1.Secret{}
	g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: hcpNS, Name: "pull-secret"}, secret)).To(Succeed())
	g.Expect(secret.Type).To(Equal(corev1.SecretTypeDockerConfigJson))
	source := &corev1.Secret{}
	g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: "pull"}, source)).To(Succeed())
	g.Expect(source.Annotations).To(HaveKeyWithValue("referenced-resource.hypershift.openshift.io/"+name, "true"))

	for _, policy := range []string{netpolicy.SameNamespace, netpolicy.KAS, netpolicy.OpenShiftIngress, netpolicy.OpenShiftMonitoring, netpolicy.NodePortKonnectivity} {
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: hcpNS, Name: policy}, &networkingv1.NetworkPolicy{})).To(Succeed(), policy)
	}
	d := &appsv1.Deployment{}
	g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: hcpNS, Name: "control-plane-operator"}, d)).To(Succeed())
	g.Expect(d.OwnerReferences).To(BeEmpty())
	g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(w.registry.Host + "/operator:1"))
}

func TestReconcile(t *testing.T) {
	t.Run("When a HostedCluster is valid it should make its control plane, and then be quiet", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(Succeed())
		w.expectControlPlane(t, "demo")
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
			_, err := w.reconciler(c).Reconcile(t.Context(), w.request("demo"))
			return err
		})
		hc, err := w.get(t.Context(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		list, err := journal.Read(t.Context(), w.client, "hostedcluster", hc.Namespace, hc.Name)
		g.Expect(err).NotTo(HaveOccurred())
		_, behind := journal.Next(list, hc.Status.Conditions, time.Now())
		g.Expect(behind).To(BeFalse(), "the journal is behind the status: %v", list)
		for conditionType, want := range map[string]string{
			hyperv1.ValidHostedClusterConfiguration: "True/AsExpected", hyperv1.SupportedHostedCluster: "True/AsExpected", hyperv1.ValidReleaseImage: "True/AsExpected",
			hyperv1.ReconciliationActive: "True/AsExpected", hyperv1.ReconciliationSucceeded: "True/ReconciliatonSucceeded", hyperv1.PlatformCredentialsFound: "True/AsExpected",
			hyperv1.ValidProxyConfiguration: "True/AsExpected", hyperv1.HostedClusterAvailable: "False/WaitingForAvailable", hyperv1.HostedClusterProgressing: "False/AsExpected",
			hyperv1.HostedClusterDegraded: "Unknown/StatusUnknown", hyperv1.EtcdAvailable: "Unknown/StatusUnknown", hyperv1.IgnitionEndpointAvailable: "False/NotFound",
		} {
			g.Expect(w.condition(t.Context(), "demo", conditionType)()).To(Equal(want), conditionType)
		}
		for _, c := range hc.Status.Conditions {
			g.Expect(c.ObservedGeneration).To(Equal(hc.Generation), c.Type)
		}
		g.Expect(hc.Status.PayloadArch).To(Equal(hyperv1.AMD64))
		g.Expect(hc.Status.Version.Desired.Image).To(Equal(w.image))
		g.Expect(hc.Status.Version.Desired.Version).To(Equal("1.35.4"))
		g.Expect(hc.Status.Version.History).To(HaveLen(1))
	})
}

func TestCrashAtEveryWrite(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		NewWithT(t).Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
		return testenv.CrashCase{
			Client: w.client,
			Run:    func(c client.WithWatch) error { return w.settle(t.Context(), c, "demo") },
			Check:  func(t testing.TB) { w.expectControlPlane(t, "demo") },
		}
	}
	testenv.CrashAtEveryWrite(t, 3, fresh) // each write meets one kind of fault
	testenv.Storm(t, 2, fresh)
}

func TestOperator(t *testing.T) {
	t.Run("When a HostedCluster is applied it should have its operator's Deployment well under a second later", func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		g := NewWithT(t)
		_, err := w.releases.Lookup(t.Context(), w.image, w.pullSecret().Data[names.DockerConfigKey])
		g.Expect(err).NotTo(HaveOccurred())
		begin := time.Now()
		g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
		g.Eventually(func() error {
			return w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns + "-demo", Name: "control-plane-operator"}, &appsv1.Deployment{})
		}, patience, often/4).Should(Succeed())
		t.Logf("HostedCluster to Deployment: %v", time.Since(begin))
		g.Eventually(w.condition(t.Context(), "demo", hyperv1.ReconciliationSucceeded), patience, often).Should(Equal("True/ReconciliatonSucceeded"))
		w.expectControlPlane(t, "demo")
	})

	t.Run("When the control plane reports it should bubble up, and publish the kubeconfig", func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Labels = map[string]string{"team": "a"} }))).To(Succeed())
		hcp := &hyperv1.HostedControlPlane{}
		key := client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo"}
		g.Eventually(func() error { return w.client.Get(ctx, key, hcp) }, patience, often).Should(Succeed())
		g.Expect(w.client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "admin-kubeconfig"},
			Data: map[string][]byte{"kubeconfig": []byte("one")}})).To(Succeed())
		before := hcp.DeepCopy()
		hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
		hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.97.0.1", Port: 6443}
		conditions.Set(&hcp.Status.Conditions, time.Now(), conditions.True(hyperv1.HostedControlPlaneAvailable, "AsExpected", "x"),
			conditions.False(hyperv1.HostedControlPlaneDegraded, "AsExpected", "x"), conditions.True(hyperv1.EtcdAvailable, "QuorumAvailable", "x"))
		g.Expect(w.client.Status().Patch(ctx, hcp, client.MergeFrom(before))).To(Succeed())

		g.Eventually(w.condition(ctx, "demo", hyperv1.HostedClusterAvailable), patience, often).Should(Equal("True/AsExpected"))
		g.Expect(w.condition(ctx, "demo", hyperv1.EtcdAvailable)()).To(Equal("True/QuorumAvailable"))
		g.Expect(w.condition(ctx, "demo", hyperv1.HostedClusterDegraded)()).To(Equal("False/AsExpected"))
		g.Eventually(func(g Gomega) {
			hc, err := w.get(ctx, "demo")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(hc.Status.KubeConfig).To(HaveValue(Equal(corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"})))
			g.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.HasBeenAvailableAnnotation, "true"))
			g.Expect(hc.Status.ControlPlaneEndpoint.Host).To(Equal("10.97.0.1"))
		}, patience, often).Should(Succeed())

		published := &corev1.Secret{}
		content := func() (string, error) {
			err := w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: "demo-admin-kubeconfig"}, published)
			return string(published.Data["kubeconfig"]), err
		}
		g.Eventually(content, patience, often).Should(Equal("one"))
		g.Expect(published.Labels).To(HaveKeyWithValue("team", "a"))
		g.Expect(published.OwnerReferences).To(HaveLen(1))
		g.Expect(w.client.Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "admin-kubeconfig"}},
			client.RawPatch("application/merge-patch+json", []byte(`{"stringData":{"kubeconfig":"two"}}`)))).To(Succeed())
		g.Eventually(content, patience, often).Should(Equal("two"))
	})
}
