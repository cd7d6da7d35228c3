package hostedcontrolplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/fresh"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/testenv"
)

// TestProcess runs the reconciler as the process does: with caches, watches and leader election.
func TestProcess(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	mgr, err := newManager(w.env.Config, Options{Namespace: w.hcp.Namespace, MetricsAddr: "0", HealthAddr: "0", LeaderElect: true})
	g.Expect(err).NotTo(HaveOccurred())
	clk := clock.RealClock{}
	own := fresh.New(mgr.GetClient(), clk, componentKind)
	wake := newWaker(mgr.GetCache(), w.hcp.Namespace)
	checker := newHealthChecker(clk, wake.Wake)
	checker.check = func(context.Context, target) error { return nil }
	ctx, stop := context.WithCancel(t.Context())
	r := w.reconciler(own)
	r.Live, r.Clock, r.PKI.Clock, r.Checker, r.Background = mgr.GetAPIReader(), clk, clk, checker, ctx
	g.Expect(setup(mgr, r, wake)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	}()

	began := time.Now()
	var authority []byte // as it was when it was first seen
	g.Eventually(func() string {
		w.play()
		if s := w.secrets()[pki.RootCA]; s != nil && authority == nil {
			authority = s.Data[pki.CACertKey]
		}
		return condition(w.read(), "Available")
	}).
		WithTimeout(2*time.Minute).WithPolling(20*time.Millisecond).Should(HavePrefix("True"), "it must become available by events alone")
	t.Logf("available after %s", time.Since(began).Round(10*time.Millisecond))

	g.Eventually(func() bool { return !w.play() && !w.changesWithin(2*time.Second) }).WithTimeout(time.Minute).Should(BeTrue(), "it must come to rest")

	// A Secret that was written by a stale read would have been rewritten meanwhile: certificates are issued once.
	g.Expect(authority).NotTo(BeEmpty())
	g.Expect(w.secrets()[pki.RootCA].Data[pki.CACertKey]).To(Equal(authority))

	// The operator's own Deployment isn't owned by the HostedControlPlane. An operator that was killed finds itself unavailable when it starts.
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: names.ControlPlaneOperator, Labels: map[string]string{names.ManagedByLabel: names.ControlPlaneOperator}},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "own"}}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "own"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "own", Image: "own"}}}}},
	}
	g.Expect(w.c.Create(t.Context(), d)).To(Succeed())
	for _, unavailable := range []int32{1, 0} {
		d.Status = appsv1.DeploymentStatus{Replicas: 1, UnavailableReplicas: unavailable}
		g.Expect(w.c.Status().Update(t.Context(), d)).To(Succeed())
		want := "False"
		if unavailable > 0 {
			want = "True"
		}
		g.Eventually(func() string { return condition(w.read(), hyperv1.HostedControlPlaneDegraded) }).
			WithTimeout(30*time.Second).Should(HavePrefix(want), "Degraded must follow Deployments that are counted, whoever owns them")
	}

	// What somebody else breaks is repaired by an event.
	g.Expect(w.c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: pki.KCMClient}})).To(Succeed())
	g.Eventually(func() error {
		return w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: pki.KCMClient}, &corev1.Secret{})
	}).WithTimeout(30 * time.Second).Should(Succeed())

	g.Expect(w.c.Delete(t.Context(), w.read())).To(Succeed())
	g.Eventually(func() bool {
		return apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), &hyperv1.HostedControlPlane{}))
	}).WithTimeout(30 * time.Second).Should(BeTrue())
}

// changesWithin reports whether any object of ours in the namespace changed while waiting.
func (w *world) changesWithin(d time.Duration) bool {
	before := w.versionsOfObjects()
	select {
	case <-w.t.Context().Done():
	case <-time.After(d):
	}
	after := w.versionsOfObjects()
	for name, version := range after {
		if before[name] != version {
			return true
		}
	}
	return len(before) != len(after)
}

func (w *world) versionsOfObjects() map[string]string {
	out := map[string]string{"hcp": w.read().ResourceVersion}
	for name, s := range w.secrets() {
		out["secret/"+name] = s.ResourceVersion
	}
	var reports hyperv1.ControlPlaneComponentList
	if err := w.c.List(w.t.Context(), &reports, client.InNamespace(w.hcp.Namespace)); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range reports.Items {
		out["report/"+c.Name] = c.ResourceVersion
	}
	return out
}

func TestFreshClient(t *testing.T) {
	env := testenv.Start(t)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	live := env.Client(t, scheme)
	w := newWorld(t)
	ns := w.hcp.Namespace

	t.Run("When the cache lags behind it should answer with what it wrote, until the cache has caught up", func(t *testing.T) {
		g := NewWithT(t)
		stale := &staleReader{Client: live}
		f := fresh.New(stale, w.clock, componentKind)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}, Data: map[string]string{"k": "1"}}
		g.Expect(f.Create(t.Context(), cm)).To(Succeed())
		got := &corev1.ConfigMap{}
		g.Expect(f.Get(t.Context(), client.ObjectKeyFromObject(cm), got)).To(Succeed())
		g.Expect(got.Data).To(HaveKeyWithValue("k", "1"))

		stale.snapshot = got.DeepCopy()
		cm.Data["k"] = "2"
		g.Expect(f.Update(t.Context(), cm)).To(Succeed())
		g.Expect(f.Get(t.Context(), client.ObjectKeyFromObject(cm), got)).To(Succeed())
		g.Expect(got.Data).To(HaveKeyWithValue("k", "2"))

		theirs := cm.DeepCopy()
		theirs.Data["k"] = "3"
		g.Expect(live.Update(t.Context(), theirs)).To(Succeed())
		stale.snapshot = theirs
		g.Expect(f.Get(t.Context(), client.ObjectKeyFromObject(cm), got)).To(Succeed())
		g.Expect(got.Data).To(HaveKeyWithValue("k", "3"), "a newer object in the cache wins")
		g.Expect(f.Wrote(cm)).To(BeFalse(), "nothing is remembered any more")
	})
	t.Run("When the cache never shows a write it should be believed in the end", func(t *testing.T) {
		g := NewWithT(t)
		f := fresh.New(&staleReader{Client: live}, w.clock, componentKind)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "b"}}
		g.Expect(f.Create(t.Context(), cm)).To(Succeed())
		w.clock.SetTime(w.clock.Now().Add(fresh.Patience + time.Second))
		g.Expect(apierrors.IsNotFound(f.Get(t.Context(), client.ObjectKeyFromObject(cm), &corev1.ConfigMap{}))).To(BeTrue())
	})
	t.Run("When it deleted an object it should not answer with it", func(t *testing.T) {
		g := NewWithT(t)
		f := fresh.New(&staleReader{Client: live}, w.clock, componentKind)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}}
		g.Expect(f.Create(t.Context(), cm)).To(Succeed())
		g.Expect(f.Delete(t.Context(), cm)).To(Succeed())
		g.Expect(apierrors.IsNotFound(f.Get(t.Context(), client.ObjectKeyFromObject(cm), &corev1.ConfigMap{}))).To(BeTrue())
	})
}

func TestFreshReports(t *testing.T) {
	w := newWorld(t)
	report := func(name string) *hyperv1.ControlPlaneComponent {
		return &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: name}}
	}
	list := func(c client.Reader, opts ...client.ListOption) map[string]string {
		reports := &hyperv1.ControlPlaneComponentList{}
		NewWithT(t).Expect(c.List(t.Context(), reports, opts...)).To(Succeed())
		out := map[string]string{}
		for _, r := range reports.Items {
			out[r.Name] = r.Status.Version
		}
		return out
	}
	here := client.InNamespace(w.hcp.Namespace)
	t.Run("When the cache lags behind a list of reports should have what was written, and their events should count as known", func(t *testing.T) {
		g := NewWithT(t)
		stale := &staleList{Client: w.c}
		f := fresh.New(stale, w.clock, componentKind)
		a, b := report("a"), report("b")
		g.Expect(f.Create(t.Context(), a)).To(Succeed())
		g.Expect(w.c.List(t.Context(), &stale.snapshot, here)).To(Succeed())
		g.Expect(f.Create(t.Context(), b)).To(Succeed())
		before := a.DeepCopy()
		a.Status.Version = "1.36.3"
		g.Expect(f.Status().Patch(t.Context(), a, client.MergeFrom(before))).To(Succeed())
		g.Expect(list(f, here)).To(Equal(map[string]string{"a": "1.36.3", "b": ""}))
		g.Expect(list(f, client.InNamespace("elsewhere"))).NotTo(HaveKey("b"))
		g.Expect(f.Wrote(a)).To(BeTrue())
		g.Expect(f.Wrote(before)).To(BeFalse(), "an older state is not the last write")

		theirs := a.DeepCopy()
		theirs.Status.Version = "1.36.4"
		g.Expect(w.c.Status().Patch(t.Context(), theirs, client.MergeFrom(a))).To(Succeed())
		g.Expect(f.Wrote(theirs)).To(BeFalse())
		g.Expect(w.c.List(t.Context(), &stale.snapshot, here)).To(Succeed())
		g.Expect(list(f, here)).To(Equal(map[string]string{"a": "1.36.4", "b": ""}), "a newer one in the cache wins")
		g.Expect(f.Delete(t.Context(), b)).To(Succeed())
		g.Expect(f.Wrote(b)).To(BeFalse())
	})
}

// staleList lists a snapshot.
type staleList struct {
	client.Client
	snapshot hyperv1.ControlPlaneComponentList
}

// List implements client.Reader.
func (s *staleList) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	s.snapshot.DeepCopyInto(list.(*hyperv1.ControlPlaneComponentList))
	return nil
}

// staleReader reads a snapshot, or nothing.
type staleReader struct {
	client.Client
	snapshot *corev1.ConfigMap
}

// Get implements client.Reader.
func (s *staleReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if s.snapshot == nil {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
	}
	s.snapshot.DeepCopyInto(obj.(*corev1.ConfigMap))
	return nil
}
