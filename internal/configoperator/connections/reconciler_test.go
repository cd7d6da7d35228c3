package connections

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

// TestReconcile plays a hosted cluster on an API server that is both clusters.
func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
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
	others := metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "AsExpected", LastTransitionTime: metav1.NewTime(noon)}
	hcp.Status.Conditions = []metav1.Condition{others}
	g.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())

	var asked []string
	var broken error
	pass := func(c client.Client) (ctrl.Result, error) {
		r := &Reconciler{
			Management: c, Hosted: c, Clock: clocktesting.NewFakePassiveClock(noon),
			Logs: func(_ context.Context, pod string) error { asked = append(asked, pod); return broken },
			Hold: func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) { return "", 0 },
		}
		return r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hcp)})
	}
	expect := func(data, plane string) {
		t.Helper()
		asked = nil
		_, err := pass(c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hcp), hcp)).To(Succeed())
		for name, want := range map[string]string{hyperv1.DataPlaneConnectionAvailable: data, hyperv1.ControlPlaneConnectionAvailable: plane, "Available": "True/AsExpected"} {
			found := conditions.Get(hcp.Status.Conditions, name)
			g.Expect(found).NotTo(BeNil(), name)
			g.Expect(string(found.Status)+"/"+found.Reason).To(Equal(want), name)
		}
		testenv.ExpectQuiet(t, c, func(c client.WithWatch) error { _, err := pass(c); return err })
	}
	create := func(o client.Object) {
		t.Helper()
		g.Expect(c.Create(t.Context(), o)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), o, client.GracePeriodSeconds(0)) })
	}
	expect("Unknown/NoWorkerNodesAvailable", "Unknown/NoWorkerNodesAvailable")
	g.Expect(asked).To(BeEmpty())

	create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}})
	expect("False/KonnectivityAgentPodsNotFound", "False/KASAccessFailed")

	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err) // the API server makes it, too, some time
	}
	renewed := metav1.NewMicroTime(noon.Add(-time.Hour))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "worker"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	create(lease)
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent-" + map[corev1.PodPhase]string{corev1.PodPending: "a", corev1.PodRunning: "b"}[phase],
			Labels: map[string]string{agentLabel: agentApp}}, Spec: corev1.PodSpec{NodeName: "worker", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		create(pod)
		pod.Status.Phase = phase
		g.Expect(c.Status().Update(t.Context(), pod)).To(Succeed())
	}
	broken = errors.New("tunnel")
	expect("False/LogsAccessFailed", "False/ConnectionCheckStale")

	broken = nil
	renewed = metav1.NewMicroTime(noon.Add(-time.Second))
	lease.Spec.RenewTime = &renewed
	g.Expect(c.Update(t.Context(), lease)).To(Succeed())
	expect("True/AsExpected", "True/AsExpected")
	g.Expect(asked).To(HaveEach("agent-b"), "only pods that run have a log")
}
