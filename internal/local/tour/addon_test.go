package tour_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/local/tour"
	"hcp.internal/platform/internal/packages/control/connector"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
	"hcp.internal/platform/internal/packages/control/program"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

// connect runs the connector of a hosted cluster until the test ends.
func connect(t *testing.T, w *packagestest.World, namespace, kubeconfig string) {
	t.Helper()
	mgr, err := connector.New(w.Env.Config, connector.Options{
		Options: program.Options{Namespace: namespace, MetricsAddr: "0", HealthAddr: "0"}, Class: connector.DefaultClass, TargetKubeconfig: kubeconfig,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the connector ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); ended.Wait() })
}

func TestAddon(t *testing.T) {
	g := NewWithT(t)
	w := packagestest.Start(t, packagecontroller.Extend)
	runDeployments(t, w.Client)
	hosted := testenv.StartOther(t)
	there := hosted.Client(t, packagestest.Scheme(t))
	runDeployments(t, there)
	registry := packagestest.NewRegistry(t)

	clusters := w.Namespace(t)
	beside := clusters + "-demo"
	scheme := packagestest.Scheme(t)
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	api := w.Env.Client(t, scheme)
	g.Expect(api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: beside}})).To(Succeed())
	g.Expect(api.Create(t.Context(), testenv.HostedCluster(clusters, "demo"))).To(Succeed())

	s := &screen{}
	c := cluster(t, w, s)
	c.DemoKubeconfig = filepath.Join(t.TempDir(), "demo.kubeconfig")
	g.Expect(os.WriteFile(c.DemoKubeconfig, hosted.Kubeconfig(t), 0o600)).To(Succeed())
	connect(t, w, beside, c.DemoKubeconfig)
	t.Cleanup(func() {
		// Other tests look at all that is on this API server.
		ctx, g := context.WithoutCancel(t.Context()), NewWithT(t)
		meta := metav1.ObjectMeta{Namespace: beside, Name: "hello"}
		g.Expect(w.Client.Delete(ctx, &v1alpha1.Package{ObjectMeta: meta})).To(Succeed())
		g.Eventually(func() bool {
			return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(&appsv1.Deployment{ObjectMeta: meta}), &appsv1.Deployment{}))
		},
			packagestest.Timeout).Should(BeTrue())
	})
	addon := tour.Addon{Registry: registry.Host, Cluster: client.ObjectKey{Namespace: clusters, Name: "demo"}}

	for _, name := range []string{
		"When an add-on is delivered it should be beside the control plane and in the hosted cluster",
		"When it is delivered again it should find it there",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			// A hosted cluster that is a few seconds old is not known to packages yet; in life it takes longer to come up.
			g.Eventually(func() error {
				s.lines = nil
				return addon.Run(t.Context(), c, t.Logf)
			}, 2*packagestest.Timeout).Should(Succeed())
			text := strings.ReplaceAll(strings.Join(s.lines, "\n"), beside, "NS")
			g.Expect(strings.ReplaceAll(text, clusters, "clusters")).To(MatchRegexp(`^\$ kubectl package build config/examples/packages/hello --tag \S+/examples/hello:1.0.0 --push
  Package NS/hello has image \S+/examples/hello:1.0.0
\$ kubectl package rollout status package/hello -n NS --timeout 5m0s
  in the namespace of the control plane: Deployment NS/hello \(1 of 1 pods available\)
  in the hosted cluster: Deployment default/hello \(1 of 1 pods available\), ConfigMap default/hello \(of clusters/demo\)
  both after \S+; they stay$`))
			err := there.Get(t.Context(), client.ObjectKey{Namespace: beside, Name: "hello"}, &appsv1.Deployment{})
			g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
			g.Expect(err).To(HaveOccurred(), "what is beside the control plane is not in the hosted cluster")
		})
	}
}
