package hostedclusterpackage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// world is a fleet on a real API server. Packages are played by the test.
type world struct {
	*testing.T
	g     Gomega
	env   *testenv.Env
	c     client.WithWatch
	owner *packagesv1.HostedClusterPackage
	ns    string // of the hosted clusters and of the operator
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), packagesv1.AddToScheme(scheme), hyperv1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	return scheme
}

var installCRDs sync.Once

// installed adds the kinds of packages to the API server of the tests.
func installed(env *testenv.Env) (err error) {
	installCRDs.Do(func() {
		var crds []*apiextensionsv1.CustomResourceDefinition
		if crds, err = config.PackageOperatorCRDs(); err == nil {
			_, err = envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: crds, MaxTime: 3 * time.Minute})
		}
	})
	return err
}

func newWorld(t *testing.T, edit func(*packagesv1.HostedClusterPackage), clusters ...string) *world {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	g.Expect(installed(env)).To(Succeed())
	w := &world{T: t, g: g, env: env, c: env.Client(t, newScheme()), ns: env.Namespace(t)}
	for _, c := range clusters {
		name, label := c, ""
		for i := range c {
			if c[i] == '=' {
				name, label = c[:i], c[i+1:]
			}
		}
		w.join(name, label)
	}
	w.owner = &packagesv1.HostedClusterPackage{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: packagesv1.HostedClusterPackageSpec{
			HostedClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": w.ns}},
			Strategy:              packagesv1.HostedClusterPackageStrategy{RollingUpgrade: &packagesv1.HostedClusterPackageStrategyRollingUpgrade{MaxUnavailable: 1}},
			Template: packagesv1.PackageTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"foo": "bar"}},
				Spec: packagesv1.PackageSpec{Image: "registry.example/addon:v1", Config: &runtime.RawExtension{Raw: []byte(`{"b":1,"a":{"x":true}}`)}}},
		},
	}
	if edit != nil {
		edit(w.owner)
	}
	g.Expect(w.c.Create(t.Context(), w.owner)).To(Succeed())
	t.Cleanup(func() {
		ctx := context.Background()
		_ = w.c.Delete(ctx, w.owner)
		_ = w.c.DeleteAllOf(ctx, &packagesv1.Package{}, client.InNamespace(w.ns))
	})
	return w
}

// join adds a hosted cluster that is available, with the namespace of its control plane.
func (w *world) join(name, label string) {
	w.Helper()
	hc := testenv.HostedCluster(w.ns, name)
	hc.Labels = map[string]string{"fleet": w.ns}
	if label != "" {
		hc.Labels["risk"] = label
	}
	w.g.Expect(w.c.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ControlPlaneNamespace(w.ns, name)}})).To(Succeed())
	w.g.Expect(w.c.Create(w.Context(), hc)).To(Succeed())
	w.available(name, true)
}

func (w *world) available(name string, is bool) {
	w.Helper()
	hc := &hyperv1.HostedCluster{}
	w.g.Expect(w.c.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, hc)).To(Succeed())
	before := hc.DeepCopy()
	conditions.Set(&hc.Status.Conditions, time.Now(), metav1.Condition{Type: string(hyperv1.HostedClusterAvailable), Status: status(is), Reason: "AsExpected"})
	w.g.Expect(w.c.Status().Patch(w.Context(), hc, client.MergeFrom(before))).To(Succeed())
}

// sleeps lets a cluster hibernate, or wakes it.
func (w *world) sleeps(name string, is bool) {
	w.Helper()
	hc := &hyperv1.HostedCluster{}
	w.g.Expect(w.c.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, hc)).To(Succeed())
	before := hc.DeepCopy()
	reason := map[bool]string{true: hyperv1.AsleepReason, false: hyperv1.WakingReason}[is]
	conditions.Set(&hc.Status.Conditions, time.Now(), metav1.Condition{Type: hyperv1.HostedClusterHibernated, Status: status(is), Reason: reason})
	w.g.Expect(w.c.Status().Patch(w.Context(), hc, client.MergeFrom(before))).To(Succeed())
}

func status(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// pkg reads the Package of a cluster; nil when there is none.
func (w *world) pkg(cluster string) *packagesv1.Package {
	w.Helper()
	p := &packagesv1.Package{}
	err := w.c.Get(w.Context(), client.ObjectKey{Namespace: names.ControlPlaneNamespace(w.ns, cluster), Name: w.owner.Name}, p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.g.Expect(err).NotTo(HaveOccurred())
	return p
}

// settle plays the package operator: the Package of a cluster is up, or down, in its present generation.
func (w *world) settle(cluster string, up bool) {
	w.Helper()
	p := w.pkg(cluster)
	w.g.Expect(p).NotTo(BeNil(), cluster)
	w.g.Expect(settle(w.Context(), w.c, p, up)).To(Succeed())
}

func settle(ctx context.Context, c client.Client, p *packagesv1.Package, up bool) error {
	before := p.DeepCopy()
	conditions.Set(&p.Status.Conditions, time.Now(),
		metav1.Condition{Type: packagesv1.ConditionAvailable, Status: status(up), Reason: "Test", ObservedGeneration: p.Generation},
		metav1.Condition{Type: packagesv1.ConditionProgressing, Status: status(!up), Reason: "Test", ObservedGeneration: p.Generation},
		metav1.Condition{Type: packagesv1.ConditionUnpacked, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: p.Generation})
	return c.Status().Patch(ctx, p, client.MergeFrom(before))
}

// image is what the Package of a cluster has; empty when there is none.
func (w *world) image(cluster string) string {
	if p := w.pkg(cluster); p != nil {
		return p.Spec.Image
	}
	return ""
}

func (w *world) read() *packagesv1.HostedClusterPackage {
	w.Helper()
	out := &packagesv1.HostedClusterPackage{}
	w.g.Expect(w.c.Get(w.Context(), client.ObjectKeyFromObject(w.owner), out)).To(Succeed())
	return out
}

// change edits the HostedClusterPackage as a user does.
func (w *world) change(edit func(*packagesv1.HostedClusterPackage)) {
	w.Helper()
	before := w.read()
	after := before.DeepCopy()
	edit(after)
	w.g.Expect(w.c.Patch(w.Context(), after, client.MergeFrom(before))).To(Succeed())
}

func (w *world) template(image string) {
	w.change(func(p *packagesv1.HostedClusterPackage) {
		p.Spec.Template.Spec.Image = "registry.example/addon:" + image
	})
}

// condition reads as "Status Reason Message".
func (w *world) condition(kind string) string {
	p := w.read()
	c := conditions.Get(p.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

func (w *world) reconciler(c client.Client) *Reconciler {
	return &Reconciler{Client: c, Live: w.c, Namespace: w.ns, Clock: clock.RealClock{}, Events: events.NewFakeRecorder(1000)}
}

func (w *world) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.owner)}
}

// pass runs the reconciler once, without caches.
func (w *world) pass(r *Reconciler) ctrl.Result {
	w.Helper()
	result, err := r.Reconcile(w.Context(), w.request())
	w.g.Expect(err).NotTo(HaveOccurred())
	return result
}
