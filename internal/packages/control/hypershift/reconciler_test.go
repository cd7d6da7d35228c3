package hypershift

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/connector"
	packagemanager "hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

const image = "registry.example.com/operator:1"

// hosted is an available hosted cluster with its namespace on the API server.
type hosted struct {
	*packagestest.World
	c   client.WithWatch
	key client.ObjectKey
	ns  string
}

func newHosted(t testing.TB, w *packagestest.World) hosted {
	t.Helper()
	scheme := packagestest.Scheme(t)
	if err := hyperv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := hosted{World: w, c: w.Env.Client(t, scheme)}
	hc := testenv.HostedCluster(w.Namespace(t), "demo")
	h.key = client.ObjectKeyFromObject(hc)
	h.ns = h.key.Namespace + "-demo"
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: h.key.String()}}}
	for _, obj := range []client.Object{ns, hc} {
		if err := h.c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	h.available(t, metav1.ConditionTrue)
	return h
}

func (h hosted) available(t testing.TB, status metav1.ConditionStatus) {
	t.Helper()
	hc := &hyperv1.HostedCluster{}
	if err := h.c.Get(t.Context(), h.key, hc); err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Available","status":%q,"reason":"AsExpected","message":"","lastTransitionTime":"2026-11-21T12:00:00Z"}]}}`, status)
	if err := h.c.Status().Patch(t.Context(), hc, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (h hosted) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: connector.Name}}
}

// run is a pass of the reconciler.
func (h hosted) run(t testing.TB) func(client.WithWatch) error {
	return func(c client.WithWatch) error {
		r := &Reconciler{Client: c, Parts: c, Settings: settings{Image: image}}
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: h.key})
		return err
	}
}

// When it is interrupted at any write it should deploy all in the end.
func TestReconcilerCrash(t *testing.T) {
	w := packagestest.Serve(t)
	fresh := func(t testing.TB) testenv.CrashCase {
		h := newHosted(t, w)
		return testenv.CrashCase{Client: h.c, Run: h.run(t), Check: func(t testing.TB) {
			g := NewWithT(t)
			for _, part := range parts() {
				g.Expect(h.c.Get(t.Context(), client.ObjectKeyFromObject(h.deployment()), part)).To(Succeed())
			}
		}}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}

func TestReconciler(t *testing.T) {
	w := packagestest.Serve(t)
	t.Run("When it is up to date it should write nothing", func(t *testing.T) {
		h := newHosted(t, w)
		NewWithT(t).Expect(h.run(t)(h.c)).To(Succeed())
		testenv.ExpectQuiet(t, h.c, h.run(t))
	})
	t.Run("When one part differs it should write that part alone", func(t *testing.T) {
		g := NewWithT(t)
		h := newHosted(t, w)
		g.Expect(h.run(t)(h.c)).To(Succeed())
		role := &rbacv1.Role{ObjectMeta: h.deployment().ObjectMeta}
		g.Expect(h.c.Patch(t.Context(), role, client.RawPatch(types.MergePatchType, []byte(`{"rules":[]}`)))).To(Succeed())
		counting := testenv.NewFaultClient(h.c, testenv.FailWrite, 0)
		g.Expect(h.run(t)(counting)).To(Succeed())
		g.Expect(counting.Writes()).To(Equal(1))
		g.Expect(h.c.Get(t.Context(), client.ObjectKeyFromObject(role), role)).To(Succeed())
		g.Expect(role.Rules).To(Equal(connectorRules()))
	})
	t.Run("When the cluster is gone but its namespace stays it should remove all", func(t *testing.T) {
		g := NewWithT(t)
		h := newHosted(t, w)
		g.Expect(h.run(t)(h.c)).To(Succeed())
		g.Expect(h.c.Delete(t.Context(), &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: h.key.Namespace, Name: h.key.Name}})).To(Succeed())
		g.Expect(h.run(t)(h.c)).To(Succeed())
		for _, part := range parts() {
			err := h.c.Get(t.Context(), client.ObjectKeyFromObject(h.deployment()), part)
			g.Expect(apierrors.IsNotFound(err) || !part.GetDeletionTimestamp().IsZero()).To(BeTrue())
		}
	})
	t.Run("When its package has a configuration it should write nothing once it is up to date", func(t *testing.T) {
		g := NewWithT(t)
		h := newHosted(t, w)
		run := func(c client.WithWatch) error {
			r := &Reconciler{Client: c, Parts: c, Settings: settings{
				PackageImage: "registry.example.com/package:1",
				Affinity:     &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
				Tolerations:  []corev1.Toleration{{Key: "tenant", Operator: corev1.TolerationOpEqual, Value: "<a>", Effect: corev1.TaintEffectNoSchedule}},
			}}
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: h.key})
			return err
		}
		g.Expect(run(h.c)).To(Succeed())
		testenv.ExpectQuiet(t, h.c, run)
	})
	t.Run("When it changes to a package and back it should leave nothing of the other way", func(t *testing.T) {
		g := NewWithT(t)
		h := newHosted(t, w)
		g.Expect(h.run(t)(h.c)).To(Succeed())
		packaged := &Reconciler{Client: h.c, Parts: h.c, Settings: settings{Image: image, PackageImage: "registry.example.com/package:1"}}
		pkg := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: connectorPackage}}
		g.Eventually(func() error {
			if _, err := packaged.Reconcile(t.Context(), ctrl.Request{NamespacedName: h.key}); err != nil {
				return err
			}
			return h.c.Get(t.Context(), client.ObjectKeyFromObject(pkg), pkg)
		}).Should(Succeed())
		g.Expect(pkg.Spec.Component).To(Equal("remote-phase"))
		g.Expect(h.c.Patch(t.Context(), pkg, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`)))).To(Succeed())
		testenv.ExpectQuiet(t, h.c, func(c client.WithWatch) error { // the first pass puts it back, the second has nothing to do
			_, err := packaged.Reconcile(t.Context(), ctrl.Request{NamespacedName: h.key})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = (&Reconciler{Client: c, Parts: c, Settings: packaged.Settings}).Reconcile(t.Context(), ctrl.Request{NamespacedName: h.key})
			return err
		})
		g.Expect(h.c.Get(t.Context(), client.ObjectKeyFromObject(pkg), pkg)).To(Succeed())
		g.Expect(pkg.Spec.Paused).To(BeFalse())
		g.Eventually(func() error {
			if err := h.run(t)(h.c); err != nil {
				return err
			}
			return h.c.Get(t.Context(), client.ObjectKeyFromObject(h.deployment()), h.deployment())
		}).Should(Succeed())
		g.Expect(apierrors.IsNotFound(h.c.Get(t.Context(), client.ObjectKeyFromObject(pkg), pkg))).To(BeTrue())
	})
}

func TestManager(t *testing.T) {
	w := packagestest.Start(t, func(ctx context.Context, d packagemanager.Deps) error {
		d.Options.RemotePhaseManagerImage = image
		return Extend(ctx, d)
	})
	t.Run("When a cluster becomes available it should get a connector, and again when that is deleted", func(t *testing.T) {
		g := NewWithT(t)
		h := newHosted(t, w)
		d := h.deployment()
		h.Eventually(t, d, func() error { return nil })
		g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
		first := d.UID
		g.Expect(h.c.Delete(t.Context(), d)).To(Succeed())
		h.Eventually(t, d, func() error {
			if d.UID == first {
				return fmt.Errorf("still the old one")
			}
			return nil
		})
	})
	t.Run("When the node selector changes it should follow", func(t *testing.T) {
		h := newHosted(t, w)
		d := h.deployment()
		h.Eventually(t, d, func() error { return nil })
		hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: h.key.Namespace, Name: h.key.Name}}
		NewWithT(t).Expect(h.c.Patch(t.Context(), hc, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodeSelector":{"role":"infra"}}}`)))).To(Succeed())
		h.Eventually(t, d, func() error {
			if d.Spec.Template.Spec.NodeSelector["role"] != "infra" {
				return fmt.Errorf("node selector is %v", d.Spec.Template.Spec.NodeSelector)
			}
			return nil
		})
	})
	t.Run("When a namespace goes it should let phases go that nobody else would", func(t *testing.T) {
		g := NewWithT(t)
		h := newHosted(t, w)
		orphan := &v1alpha1.ObjectSetPhase{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: h.ns, Name: "orphan", Labels: map[string]string{v1alpha1.PhaseClassLabel: connector.DefaultClass}, Finalizers: []string{v1alpha1.CachedFinalizer},
			},
			Spec: v1alpha1.ObjectSetPhaseSpec{Revision: 1, Objects: []v1alpha1.ObjectSetObject{packagestest.ConfigMap("x", nil)}},
		}
		g.Expect(h.c.Create(t.Context(), orphan)).To(Succeed())
		parent := packagestest.ObjectSet(h.ns, "parent", 1, v1alpha1.ObjectSetTemplatePhase{
			Name: "a", Class: connector.DefaultClass, Objects: []v1alpha1.ObjectSetObject{packagestest.ConfigMap("x", nil)},
		})
		g.Expect(h.c.Create(t.Context(), parent)).To(Succeed())
		child := &v1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "parent-a"}}
		h.Eventually(t, child, func() error { return nil })
		g.Expect(h.c.Patch(t.Context(), child, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+v1alpha1.CachedFinalizer+`"]}}`)))).To(Succeed())
		// Deleted before its namespace is: no event of its own tells of that.
		g.Expect(h.c.Delete(t.Context(), orphan)).To(Succeed())
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns}}
		started := time.Now()
		g.Expect(h.c.Delete(t.Context(), ns)).To(Succeed())
		h.Gone(t, orphan)
		h.Gone(t, child)
		h.Gone(t, ns)
		t.Logf("the namespace was gone after %s", time.Since(started).Round(time.Second))
	})
}
