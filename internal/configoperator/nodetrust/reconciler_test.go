package nodetrust

import (
	"encoding/pem"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodetrust"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme, err := process.Scheme(hyperv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme)
	g.Expect(err).NotTo(HaveOccurred())
	c := env.Client(t, scheme)
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "demo"}}
	hcp.Spec.PullSecret.Name, hcp.Spec.InfraID, hcp.Spec.ReleaseImage = "pull-secret", "demo", "registry.example.com/release:1.36.3"
	hcp.Spec.IssuerURL, hcp.Spec.Platform.Type = "https://kubernetes.default.svc", hyperv1.NonePlatform
	hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
	hcp.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}})
	}
	g.Expect(c.Create(t.Context(), hcp)).To(Succeed())
	pass := func(c client.WithWatch) error {
		_, err := (&Reconciler{
			Management: c, Hosted: c, Clock: clocktesting.NewFakePassiveClock(noon), Image: "registry.example.com/sidecar:1",
			Hold: func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) { return "", 0 },
		}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hcp)})
		return err
	}
	told := func() *metav1.Condition {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hcp), hcp)).To(Succeed())
		return conditions.Get(hcp.Status.Conditions, hyperv1.NodesTrustAuthorities)
	}
	daemons := &appsv1.DaemonSet{}
	key := client.ObjectKey{Namespace: "kube-system", Name: "node-trust"}

	g.Expect(pass(c)).To(Succeed())
	g.Expect(told()).To(BeNil(), "When nothing was ever replaced nothing should be said")
	g.Expect(client.IgnoreNotFound(c.Get(t.Context(), key, daemons))).To(Succeed())
	g.Expect(daemons.UID).To(BeEmpty(), "When nothing was ever replaced nothing should run on nodes")

	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: nodetrust.ConfigMap},
		Data: map[string]string{nodetrust.RootKey: bundle, nodetrust.KubeletKey: bundle, nodetrust.AwaitedKey: "true"}}
	g.Expect(c.Create(t.Context(), cm)).To(Succeed())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-of-node-trust"}}
	g.Expect(c.Create(t.Context(), node)).To(Succeed())
	t.Cleanup(func() { // the API server is shared with other tests of the package
		for _, o := range append(objects(cm.Data, "x"), node) {
			_ = c.Delete(t.Context(), o)
		}
	})
	g.Expect(pass(c)).To(Succeed())
	g.Expect(told()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("worker-of-node-trust (no pod"))))
	g.Expect(c.Get(t.Context(), key, daemons)).To(Succeed())
	hash := nodetrust.HashOf(cm.Data)
	g.Expect(daemons.Spec.Template.Annotations).To(HaveKeyWithValue(hashAnnotation, hash))
	g.Expect(daemons.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--hash=" + hash))
	g.Expect(daemons.Spec.Template.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
	testenv.ExpectQuiet(t, c, pass)

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "node-trust-x", Labels: map[string]string{appLabel: daemonSet}, Annotations: map[string]string{hashAnnotation: hash}},
		Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
	pod.Spec.ServiceAccountName = "node-trust"
	g.Expect(c.Create(t.Context(), pod)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)) })
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	g.Expect(c.Status().Update(t.Context(), pod)).To(Succeed())
	g.Expect(pass(c)).To(Succeed())
	g.Expect(told()).To(HaveField("Status", metav1.ConditionTrue))
	g.Expect(nodetrust.Reported(told().Message)).To(Equal(hash))
	testenv.ExpectQuiet(t, c, pass)

	cm.Data[nodetrust.AwaitedKey] = "false"
	g.Expect(c.Update(t.Context(), cm)).To(Succeed())
	g.Expect(pass(c)).To(Succeed())
	g.Expect(told()).To(BeNil(), "When nobody is waited for any more nothing should be said")
	g.Expect(c.Get(t.Context(), key, daemons)).To(Succeed(), "nodes go on following")
	testenv.ExpectQuiet(t, c, pass)
}
