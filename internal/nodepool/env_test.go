package nodepool

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fixedReleases answers by the image's tag.
type fixedReleases struct{}

func (fixedReleases) Lookup(_ context.Context, image string, _ []byte) (*release.Release, error) {
	var version string
	if _, err := fmt.Sscanf(image, "registry/release:%s", &version); err != nil {
		return nil, fmt.Errorf("%w: no such image", release.ErrNotFound)
	}
	return exampleRelease(version), nil
}

func exampleRelease(version string) *release.Release {
	return &release.Release{Image: "registry/release:" + version, Version: version, Kubernetes: true, KubernetesVersion: version, Arch: "AMD64",
		Images: map[string]string{"local-node": "registry/local-node@sha256:" + version}}
}

// world is a management cluster with a HostedCluster that is ready for machines.
type world struct {
	env    *testenv.Env
	client client.WithWatch
	clock  *testclock.FakePassiveClock
	ns     string
	hcpNS  string
	tokens int
	// releases are fixedReleases unless the test says otherwise.
	releases releases
}

func newWorld(t testing.TB) *world {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme, err := hostedcluster.NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	w := &world{env: env, releases: fixedReleases{}, client: env.Client(t, scheme), ns: env.Namespace(t), clock: testclock.NewFakePassiveClock(time.Now())}
	w.hcpNS = w.ns + "-demo"
	hc := exampleHostedCluster(w.ns)
	status := hc.Status
	g.Expect(w.client.Create(t.Context(), hc)).To(Succeed())
	hc.Status = status
	g.Expect(w.client.Status().Update(t.Context(), hc)).To(Succeed())
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.hcpNS, Labels: map[string]string{hyperv1.HostedControlPlaneLabel: "true"}, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: w.ns + "/demo"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "pull"}, Data: map[string][]byte{names.DockerConfigKey: []byte(`{"auths":{}}`)}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: ignitionCASecret}, Data: map[string][]byte{ignitionCAKey: []byte("certificate")}},
	} {
		g.Expect(w.client.Create(t.Context(), obj)).To(Succeed())
	}
	return w
}

// exampleHostedCluster is up, at its release, and has a platform with machines.
func exampleHostedCluster(ns string) *hyperv1.HostedCluster {
	return hostedclustertest.Example(ns, "registry/release:1.36.3", func(hc *hyperv1.HostedCluster) {
		hc.Spec.InfraID, hc.Spec.Platform.Type = "demo-abcde", hyperv1.LocalPlatform
		done := metav1.NewTime(noon)
		hc.Status = hyperv1.HostedClusterStatus{
			IgnitionEndpoint: "192.0.2.10:30443", KubeConfig: &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"},
			Version: &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Version: "1.36.3", Image: "registry/release:1.36.3"},
				History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "1.36.3", Image: "registry/release:1.36.3", StartedTime: done, CompletionTime: &done}}},
		}
	})
}

// examplePool is valid by default.
func examplePool(ns string, mutate ...func(*hyperv1.NodePool)) *hyperv1.NodePool {
	np := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "workers"}}
	np.Spec = hyperv1.NodePoolSpec{
		ClusterName: "demo", Release: hyperv1.Release{Image: "registry/release:1.36.3"}, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.LocalPlatform},
		Replicas: ptr.To[int32](2), Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace}, Arch: hyperv1.ArchitectureAMD64,
	}
	for _, m := range mutate {
		m(np)
	}
	return np
}

// reconciler is one on an uncached client.
func (w *world) reconciler(c client.Client) *Reconciler {
	book := &journal.Book{Client: c, Live: testenv.Uncached(c), Clock: w.clock} // of a process that has just started
	return &Reconciler{Client: c, Live: testenv.Uncached(c), Journal: book, Clock: w.clock, Releases: w.releases, ClusterAPI: true, Platforms: platform.Enabled{hyperv1.LocalPlatform}, NewToken: func() string {
		w.tokens++
		return fmt.Sprintf("token-%d", w.tokens)
	}}
}

func (w *world) request() ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.ns, Name: "workers"}}
}

// settle calls the reconciler until a pass writes nothing.
func (w *world) settle(ctx context.Context, c client.WithWatch) error {
	for range 30 {
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		if _, err := w.reconciler(counting).Reconcile(ctx, w.request()); err != nil {
			return err
		}
		if counting.Writes() == 0 {
			return nil
		}
	}
	return fmt.Errorf("still writing after 30 passes")
}

func (w *world) pool(t testing.TB) *hyperv1.NodePool {
	t.Helper()
	np := &hyperv1.NodePool{}
	NewWithT(t).Expect(w.client.Get(t.Context(), w.request().NamespacedName, np)).To(Succeed())
	return np
}

// expectJournal looks whether the journal ends with what the status says.
func (w *world) expectJournal(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	list, err := journal.Read(t.Context(), w.client, "nodepool", w.ns, "workers")
	g.Expect(err).NotTo(HaveOccurred())
	_, behind := journal.Next(list, dated(w.pool(t).Status.Conditions), w.clock.Now())
	g.Expect(list).NotTo(BeEmpty())
	g.Expect(behind).To(BeFalse(), "the journal is behind the status")
}

func (w *world) condition(t testing.TB, conditionType string) string {
	t.Helper()
	c := findCondition(w.pool(t).Status.Conditions, conditionType)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s", c.Status, c.Reason)
}

func (w *world) deployment(t testing.TB) *clusterv1.MachineDeployment {
	t.Helper()
	md := &clusterv1.MachineDeployment{}
	NewWithT(t).Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.hcpNS, Name: "workers"}, md)).To(Succeed())
	return md
}
