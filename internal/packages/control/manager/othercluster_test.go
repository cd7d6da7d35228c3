package manager_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/control/objectsetphase"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
	"hcp.internal/platform/internal/packages/engine/watch"
	. "hcp.internal/platform/internal/packages/packagestest"
)

const otherClass = "hosted-cluster"

var connector sync.Once

// connect runs what a process between two clusters runs; here both are the same one.
func connect(t *testing.T, w *World) {
	t.Helper()
	connector.Do(func() {
		ctx := context.Background()
		mgr, err := ctrl.NewManager(w.Env.Config, ctrl.Options{Scheme: Scheme(t), Controller: process.Queue(), Cache: manager.CacheOptions()})
		if err != nil {
			t.Fatal(err)
		}
		watches, err := watch.New(w.Env.Config, mgr.GetHTTPClient(), mgr.GetRESTMapper(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := scope.Namespaced
		r := &objectsetphase.Reconciler{
			Scope: s, Class: otherClass, Client: s.Client(mgr.GetClient()), Clock: clock.RealClock{},
			Status: &status.Writer{Client: mgr.GetClient(), Kind: s.GroupVersionKind("ObjectSetPhase")},
			Engine: &phase.Engine{Client: w.Env.Client(t, Scheme(t)), Mapper: mgr.GetRESTMapper(), Watch: watches, Rules: phase.OtherCluster()},
		}
		if err := errors.Join(mgr.Add(watches), r.SetupWithManager(mgr, watches)); err != nil {
			t.Fatal(err)
		}
		go func() { _ = mgr.Start(ctx) }()
	})
}

func TestOtherCluster(t *testing.T) {
	t.Run("When a phase belongs to another cluster it should be owned by an annotation, in any namespace", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		connect(t, w)
		here, there := w.Namespace(t), w.Namespace(t)
		od := ObjectDeployment(here, "web", classed(otherClass, Phase("guest", inNamespace(there, ConfigMap("cm", map[string]any{"v": "1"})))))
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		w.Eventually(t, od, latest(od))
		cm := configMap(there, "cm")
		g.Expect(get(w, t, cm)).To(Succeed())
		g.Expect(cm.OwnerReferences).To(BeEmpty())
		g.Expect(cm.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "boxcutter"))
		owners, err := owner.Annotation{}.Read(cm)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(owners).To(HaveLen(1))
		g.Expect(owners[0].Namespace).To(Equal(here))

		cm.Data["v"] = "theirs"
		g.Expect(w.Client.Update(t.Context(), cm)).To(Succeed())
		g.Eventually(func() string { _ = get(w, t, cm); return cm.Data["v"] }, Timeout).Should(Equal("1"), "drift is noticed across clusters")

		setTemplate(t, w, od, classed(otherClass, Phase("guest", inNamespace(there, ConfigMap("cm", map[string]any{"v": "2"})))))
		g.Eventually(func() string { _ = get(w, t, cm); return cm.Data["v"] }, Timeout).Should(Equal("2"))
		g.Eventually(func() int { _ = get(w, t, cm); owners, _ = owner.Annotation{}.Read(cm); return len(owners) }, Timeout).Should(Equal(1), "the old revision lets go")
		g.Expect(owners[0].Controller).To(BeTrue())

		foreign := configMap(there, "foreign")
		foreign.Labels = map[string]string{v1alpha1.CacheLabel: "True"}
		g.Expect(w.Client.Create(t.Context(), foreign)).To(Succeed())
		version := foreign.ResourceVersion
		setTemplate(t, w, od, classed(otherClass, Phase("guest", inNamespace(there, ConfigMap("cm", map[string]any{"v": "3"})), inNamespace(there, ConfigMap("foreign", nil)))))
		w.Eventually(t, od, HasCondition(od, &od.Status.Conditions, "Progressing", "True", "LatestRevisionPendingSuccess", ""))
		g.Consistently(func() string { _ = get(w, t, foreign); return foreign.ResourceVersion }, quiet).Should(Equal(version))

		g.Expect(w.Client.Delete(t.Context(), od, client.PropagationPolicy("Foreground"))).To(Succeed())
		w.Gone(t, od)
		w.Gone(t, cm)
		g.Expect(get(w, t, foreign)).To(Succeed())
	})
}
