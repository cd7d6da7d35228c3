package nodecount

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t) // it plays both clusters
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c := env.Client(t, scheme)
	hc := testenv.HostedCluster(env.Namespace(t), "demo")
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: hc.ObjectMeta, Spec: hyperv1.HostedControlPlaneSpec{
		ReleaseImage: "registry.invalid/release:1", PullSecret: hc.Spec.PullSecret, Platform: hc.Spec.Platform, Networking: hc.Spec.Networking, Services: hc.Spec.Services,
		IssuerURL: "https://kubernetes.default.svc", InfraID: "demo", ControllerAvailabilityPolicy: hyperv1.SingleReplica,
		Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}},
	}}
	g.Expect(c.Create(t.Context(), hcp)).To(Succeed())
	held := ""
	reconcile := func(c client.WithWatch) error {
		r := &Reconciler{Management: c, Hosted: c, Clock: testclock.NewFakePassiveClock(time.Now()),
			Hold: func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) { return held, 0 }}
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hcp)})
		return err
	}
	told := func() *int {
		g.Expect(reconcile(c)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hcp), hcp)).To(Succeed())
		return hcp.Status.NodeCount
	}
	g.Expect(told()).To(HaveValue(Equal(0)), "none is a number, too")
	var nodes []*corev1.Node
	for _, name := range []string{"count-a", "count-b", "count-c"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		g.Expect(c.Create(t.Context(), n)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(t.Context(), n) })
		nodes = append(nodes, n)
	}
	g.Expect(told()).To(HaveValue(Equal(3)))
	testenv.ExpectQuiet(t, c, reconcile)
	g.Expect(c.Delete(t.Context(), nodes[0])).To(Succeed())
	held = "paused"
	g.Expect(told()).To(HaveValue(Equal(3)), "while something holds, nothing is told")
	held = ""
	g.Expect(told()).To(HaveValue(Equal(2)))
}
