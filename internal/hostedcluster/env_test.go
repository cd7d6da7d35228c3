package hostedcluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/watches"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/releasetest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// world is a management cluster with a registry, and a namespace with what a HostedCluster refers to.
type world struct {
	env      *testenv.Env
	client   client.WithWatch
	registry *releasetest.Registry
	releases *release.Registry
	ns       string
	image    string // release 1.35.4
	next     string // release 1.36.3
}

func newWorld(t testing.TB) *world {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme, err := NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	w := &world{env: env, client: env.Client(t, scheme), registry: releasetest.New(t), ns: env.Namespace(t)}
	w.releases = release.NewRegistryProvider(release.Options{})
	w.image = w.registry.PushRelease(t, "1.35.4", w.registry.KubernetesTags())
	w.next = w.registry.PushRelease(t, "1.36.3", w.registry.KubernetesTags())
	g.Expect(w.client.Create(t.Context(), w.pullSecret())).To(Succeed())
	return w
}

func (w *world) pullSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{names.DockerConfigKey: []byte(`{"auths":{}}`)}}
}

func (w *world) hostedCluster(mutate ...func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	return hostedclustertest.Example(w.ns, w.image, mutate...)
}

// reconciler is one on an uncached client.
func (w *world) reconciler(c client.Client) *Reconciler {
	return &Reconciler{
		Client: c, Live: testenv.Uncached(c), Clock: clock.RealClock{}, Releases: w.releases, ControlPlaneOperator: operatorOptions(),
		Platforms:     platform.Enabled{hyperv1.LocalPlatform},
		OperatorImage: w.registry.Host + "/operator:1", Management: &management.Cluster{Reader: c, Mapper: c.RESTMapper(), NativeSidecars: true, Clock: clock.RealClock{}},
		RandomID: func(int) string { return "abcde" }, UUID: func() string { return "0a5b1c4e-3c9f-4f5e-8d53-7f6c6f0c2a11" },
		Journal: &journal.Book{Client: c, Live: testenv.Uncached(c), Clock: clock.RealClock{}}, // of a process that has just started
	}
}

// settle calls the reconciler until a pass writes nothing.
func (w *world) settle(ctx context.Context, c client.WithWatch, name string) error {
	for range 30 {
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		if _, err := w.reconciler(counting).Reconcile(ctx, w.request(name)); err != nil {
			return err
		}
		if counting.Writes() == 0 {
			return nil
		}
	}
	return fmt.Errorf("still writing after 30 passes")
}

func (w *world) request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.ns, Name: name}}
}

func (w *world) get(ctx context.Context, name string) (*hyperv1.HostedCluster, error) {
	hc := &hyperv1.HostedCluster{}
	return hc, w.client.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: name}, hc)
}

// start runs the operator itself, with its caches and watches, until the test ends.
func (w *world) start(t testing.TB) {
	t.Helper()
	w.run(t, rest.CopyConfig(w.env.Config), func(*Reconciler) {})
}

// run runs an operator that reaches the API server at cfg, with its caches and watches, until the test ends.
func (w *world) run(t testing.TB, cfg *rest.Config, configure func(*Reconciler)) {
	t.Helper()
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	scheme, err := NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Cache: watches.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: process.Queue(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	sources, err := operator.NewSourceCache(cfg, mgr)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.Add(sources)).To(Succeed())
	r := w.reconciler(mgr.GetClient())
	r.Live = mgr.GetAPIReader()
	r.Scope = &w.ns // other tests run operators of their own
	configure(r)
	g.Expect(r.SetupWithManager(mgr, sources)).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	g.Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the operator: %v", err)
		}
	})
}

const (
	patience = time.Minute // on a machine that builds other things, too
	often    = 20 * time.Millisecond
)

// condition reads a condition as "Status/Reason".
func (w *world) condition(ctx context.Context, name, conditionType string) func() (string, error) {
	return func() (string, error) {
		hc, err := w.get(ctx, name)
		if err != nil {
			return "", err
		}
		c := conditions.Get(hc.Status.Conditions, conditionType)
		if c == nil {
			return "", nil
		}
		return fmt.Sprintf("%s/%s", c.Status, c.Reason), nil
	}
}

func (w *world) message(ctx context.Context, name, conditionType string) string {
	hc, err := w.get(ctx, name)
	if err != nil {
		return err.Error()
	}
	if c := conditions.Get(hc.Status.Conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

// missing tells that an object does not exist.
func (w *world) missing(ctx context.Context, obj client.Object, ns, name string) func() error {
	return func() error {
		err := w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			gvk, _ := apiutil.GVKForObject(obj, w.client.Scheme())
			return fmt.Errorf("%s %s/%s still exists", gvk.Kind, ns, name)
		}
		return err
	}
}
