package objectdeployment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/objectdeployment"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
	. "hcp.internal/platform/internal/packages/packagestest"
)

// reconciler is one whose cache of revisions is behind as long as lags says so.
func reconciler(c client.WithWatch, lags func() bool) *objectdeployment.Reconciler {
	s := scope.Namespaced
	var before []v1alpha1.ObjectSet
	cached := interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		err := unindexed{c}.List(ctx, list, opts...)
		if sets, ok := list.(*v1alpha1.ObjectSetList); ok && err == nil && len(sets.Items) > 0 { // those without a controller are none
			if lags() {
				sets.Items = before
			} else {
				before = sets.Items
			}
		}
		return err
	}})
	return &objectdeployment.Reconciler{Scope: s, Client: cached, Live: c, Clock: clock.RealClock{}, Status: &status.Writer{Client: c, Kind: s.GroupVersionKind("ObjectDeployment")}}
}

func TestBehind(t *testing.T) {
	w := Serve(t)
	request := func(od client.Object) ctrl.Request {
		return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(od)}
	}
	t.Run("When the template changes twice before the cache has the revision of the first change they should have two numbers", func(t *testing.T) {
		g, ns, lags := NewWithT(t), w.Namespace(t), false
		od := ObjectDeployment(ns, "web", Phase("a", ConfigMap("one", map[string]any{"v": "1"})))
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		r := reconciler(w.Client, func() bool { return lags })
		pass := func() ctrl.Result {
			result, err := r.Reconcile(t.Context(), request(od))
			g.Expect(err).NotTo(HaveOccurred())
			return result
		}
		change := func(value string) {
			g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(od), od)).To(Succeed())
			od.Spec.Template.Spec.Phases[0] = Phase("a", ConfigMap("one", map[string]any{"v": value}))
			g.Expect(w.Client.Update(t.Context(), od)).To(Succeed())
			pass()
		}
		pass()
		pass()
		lags = true
		change("2")
		change("3")
		g.Expect(pass().RequeueAfter).NotTo(BeZero(), "it waits for the cache")
		lags = false
		pass()
		list := &v1alpha1.ObjectSetList{}
		g.Expect(w.Client.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		numbers := map[string]int64{}
		for _, os := range list.Items {
			numbers[os.Spec.Phases[0].Objects[0].Object.Object["data"].(map[string]any)["v"].(string)] = os.Spec.Revision
		}
		g.Expect(numbers).To(Equal(map[string]int64{"1": 1, "2": 2, "3": 3}))
	})
	t.Run("When the API server takes no revision it should say why", func(t *testing.T) {
		g, ns := NewWithT(t), w.Namespace(t)
		od := ObjectDeployment(ns, "web", Phase("a", ConfigMap("one", nil)))
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		full := interceptor.NewClient(w.Client, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "objectsets"}, obj.GetName(), errors.New("exceeded quota: revisions"))
		}})
		_, err := reconciler(full, func() bool { return false }).Reconcile(t.Context(), request(od))
		g.Expect(err).To(MatchError(ContainSubstring("exceeded quota")))
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(od), od)).To(Succeed())
		g.Expect(meta.FindStatusCondition(od.Status.Conditions, v1alpha1.ConditionProgressing).Message).To(ContainSubstring("exceeded quota: revisions"))
	})
}

func TestSelector(t *testing.T) {
	w := Serve(t)
	t.Run("When the selector does not match its revisions it should go on to the next template all the same", func(t *testing.T) {
		g, ns := NewWithT(t), w.Namespace(t)
		od := ObjectDeployment(ns, "web", Phase("a", ConfigMap("one", map[string]any{"v": "1"})))
		od.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"other": "label"}}
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		r := reconciler(w.Client, func() bool { return false })
		pass := func() ctrl.Result {
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(od)})
			g.Expect(err).NotTo(HaveOccurred())
			return result
		}
		pass()
		g.Expect(pass().RequeueAfter).NotTo(Equal(100*time.Millisecond), "it knows its revision")
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(od), od)).To(Succeed())
		od.Spec.Template.Spec.Phases[0] = Phase("a", ConfigMap("one", map[string]any{"v": "2"}))
		g.Expect(w.Client.Update(t.Context(), od)).To(Succeed())
		pass()
		list := &v1alpha1.ObjectSetList{}
		g.Expect(w.Client.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		g.Expect(list.Items).To(ConsistOf(HaveField("Spec.Revision", int64(1)), HaveField("Spec.Revision", int64(2))))
	})
}
