package connector

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/program"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// quick is DefaultTiming for tests.
func quick() Timing {
	return Timing{Every: 300 * time.Millisecond, Again: 100 * time.Millisecond, First: 200 * time.Millisecond, Last: time.Second, Settled: time.Minute}
}

// pair is a management cluster with the controllers of packages, and a hosted cluster with its connector.
type pair struct {
	*packagestest.World
	hosted *testenv.Env
	// there is a client of the hosted cluster.
	there      client.WithWatch
	kubeconfig string
	ns         string
}

// newPair's hosted cluster is the test's own, or shared.
func newPair(t *testing.T, hosted *testenv.Env) *pair {
	t.Helper()
	p := &pair{World: packagestest.Start(t), hosted: hosted, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	p.there = hosted.Client(t, packagestest.Scheme(t))
	p.ns = p.Namespace(t)
	return p
}

// publish writes the kubeconfig as the kubelet does with a Secret: by a rename.
func (p *pair) publish(t testing.TB, content []byte) {
	t.Helper()
	temporary := p.kubeconfig + ".new"
	if err := errors.Join(os.WriteFile(temporary, content, 0o600), os.Rename(temporary, p.kubeconfig)); err != nil {
		t.Fatal(err)
	}
}

// connect runs the connector until the returned function is called, or the test ends.
func (p *pair) connect(t testing.TB) context.CancelFunc {
	t.Helper()
	o := Options{Options: program.Options{Namespace: p.ns, MetricsAddr: "0", HealthAddr: "0"}, Class: DefaultClass, TargetKubeconfig: p.kubeconfig}
	mgr, err := build(p.Env.Config, o, DefaultLimits(), quick())
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
	stop := func() { cancel(); ended.Wait() }
	t.Cleanup(stop)
	return stop
}

func (p *pair) create(t testing.TB, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		if err := p.Client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// hostedPhase goes to the hosted cluster.
func hostedPhase(name string, objects ...v1alpha1.ObjectSetObject) v1alpha1.ObjectSetTemplatePhase {
	p := packagestest.Phase(name, objects...)
	p.Class = DefaultClass
	return p
}

// configMap of the hosted cluster's namespace default.
func configMap(name, value string) v1alpha1.ObjectSetObject {
	o := packagestest.ConfigMap(name, map[string]any{"key": value})
	o.Object.SetNamespace("default")
	return o
}

func remoteConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// eventually waits until check has nothing to say about an object in the hosted cluster.
func (p *pair) eventually(t testing.TB, obj client.Object, check func() error) {
	t.Helper()
	(&packagestest.World{Client: p.there}).Eventually(t, obj, check)
}

func (p *pair) gone(t testing.TB, obj client.Object) {
	t.Helper()
	(&packagestest.World{Client: p.there}).Gone(t, obj)
}

func exists() error { return nil }

// available waits for a condition of an ObjectSetPhase; reason "" stands for success.
func (p *pair) phaseIs(t testing.TB, name string, status metav1.ConditionStatus, reason string) *v1alpha1.ObjectSetPhase {
	t.Helper()
	osp := &v1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: name}}
	p.Eventually(t, osp, func() error {
		return packagestest.HasCondition(osp, &osp.Status.Conditions, v1alpha1.ConditionAvailable, status, reason, "")()
	})
	return osp
}

func (p *pair) setIs(t testing.TB, name string, status metav1.ConditionStatus, reason string) *v1alpha1.ObjectSet {
	t.Helper()
	os := &v1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: name}}
	p.Eventually(t, os, func() error {
		return packagestest.HasCondition(os, &os.Status.Conditions, v1alpha1.ConditionAvailable, status, reason, "")()
	})
	return os
}

// unchanged fails when an object changes within d.
func (p *pair) unchanged(t testing.TB, c client.Client, obj client.Object, d time.Duration) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	version := obj.GetResourceVersion()
	_ = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, d, false, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil && ctx.Err() == nil {
			t.Errorf("reading %s: %v", obj.GetName(), err)
			return true, nil
		}
		if obj.GetResourceVersion() != version {
			t.Errorf("%s was written though nothing changed", obj.GetName())
			return true, nil
		}
		return false, nil
	})
}

func message(list []metav1.Condition) string {
	if c := meta.FindStatusCondition(list, v1alpha1.ConditionAvailable); c != nil {
		return c.Message
	}
	return ""
}
