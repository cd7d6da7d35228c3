package provider

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// both are the clusters that a Report works on. Cluster API is not there: what is deleted is gone at once, and a LocalMachine does not go with its Machine.
type both struct {
	Gomega
	report *Report
	writes int
}

// newBoth has claims as a cache shows them, and as they are.
func newBoth(t *testing.T, cached, live []string, objects ...client.Object) *both {
	w := &both{Gomega: NewWithT(t)}
	scheme, gv := runtime.NewScheme(), schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	scheme.AddKnownTypes(gv, &v1.NodeClaim{}, &v1.NodeClaimList{})
	metav1.AddToGroupVersion(scheme, gv)
	w.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	hosted := func(claims []string) client.WithWatch {
		b := fake.NewClientBuilder().WithScheme(scheme)
		for _, name := range claims {
			b.WithObjects(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1.TerminationFinalizer}}})
		}
		return b.Build()
	}
	hcp := &unstructured.Unstructured{}
	hcp.SetGroupVersionKind(schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedControlPlane"})
	hcp.SetNamespace("clusters-demo")
	hcp.SetName("demo")
	management := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(append(objects, hcp)...).WithStatusSubresource(hcp).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			w.writes++
			return c.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	w.report = &Report{Hosted: hosted(cached), Live: hosted(live), Machines: Machines{Client: management, Namespace: "clusters-demo"}, ControlPlane: "demo"}
	return w
}

// object is what was made of a machine some time ago.
func object(kind, name string, age time.Duration) *unstructured.Unstructured {
	u := Machines{Namespace: "clusters-demo"}.object(kind)
	u.SetName(name)
	u.SetLabels(map[string]string{claimLabel: name})
	u.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-age)))
	return u
}

func deleting(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetFinalizers([]string{"cluster.x-k8s.io/machine"})
	u.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	return u
}

// pass is a pass some minutes after the last.
func (w *both) pass() ctrl.Result {
	w.report.looked = time.Time{}
	w.writes = 0
	result, err := w.report.Reconcile(context.Background(), ctrl.Request{})
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

func (w *both) left() (names []string) {
	for _, kind := range []string{"Machine", "LocalMachine"} {
		items, err := w.report.Machines.list(context.Background(), kind)
		w.Expect(err).NotTo(HaveOccurred())
		for i := range items {
			names = append(names, kind+" "+items[i].GetName())
		}
	}
	return names
}

func (w *both) counts() map[string]any {
	hcp := &unstructured.Unstructured{}
	hcp.SetGroupVersionKind(schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedControlPlane"})
	w.Expect(w.report.Machines.Client.Get(context.Background(), client.ObjectKey{Namespace: "clusters-demo", Name: "demo"}, hcp)).To(Succeed())
	counts, _, _ := unstructured.NestedMap(hcp.Object, "status", "autoNode")
	return counts
}

func TestOrphans(t *testing.T) {
	const old, young = time.Hour, time.Minute
	pair := func(name string, age time.Duration) []client.Object {
		return []client.Object{object("Machine", name, age), object("LocalMachine", name, age)}
	}
	for name, tc := range map[string]struct {
		cached, live []string
		objects      []client.Object
		left         []string // after two passes
	}{
		"When a machine has its claim it should stay":                            {[]string{"a"}, []string{"a"}, pair("a", old), []string{"Machine a", "LocalMachine a"}},
		"When the cache does not show its claim yet it should stay":              {nil, []string{"a"}, pair("a", old), []string{"Machine a", "LocalMachine a"}},
		"When its claim is gone it should go, though the cache still shows that": {[]string{"a"}, nil, pair("a", old), nil},
		"When its Machine was never made its LocalMachine should go":             {nil, nil, []client.Object{object("LocalMachine", "a", old)}, nil},
		"When it was made just now it should stay":                               {nil, nil, pair("a", young), []string{"Machine a", "LocalMachine a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBoth(t, tc.cached, tc.live, tc.objects...)
			w.Expect(w.pass().RequeueAfter).To(Equal(staying))
			w.pass()
			w.Expect(w.left()).To(Equal(tc.left))
			w.pass()
			w.Expect(w.writes).To(BeZero(), "nothing has changed")
		})
	}
	t.Run("When a machine is of a NodePool of the management cluster it should stay", func(t *testing.T) {
		foreign := object("LocalMachine", "workers-abcde", old)
		foreign.SetLabels(nil)
		w := newBoth(t, nil, nil, foreign)
		w.pass()
		w.Expect(w.report.Machines.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
	})
	t.Run("When machines were looked at a moment ago events should not have it look again", func(t *testing.T) {
		w := newBoth(t, nil, nil, pair("a", old)...)
		w.report.looked = time.Now()
		_, err := w.report.Reconcile(t.Context(), ctrl.Request{})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.left()).To(HaveLen(2))
	})
	t.Run("When the API server of the hosted cluster does not tell its claims it should remove nothing, and count all the same", func(t *testing.T) {
		w := newBoth(t, []string{"a"}, nil, pair("a", old)...)
		w.report.Live = fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build() // knows no NodeClaims
		_, err := w.report.Reconcile(t.Context(), ctrl.Request{})
		w.Expect(err).To(MatchError(ContainSubstring("listing NodeClaims")))
		w.Expect(w.left()).To(HaveLen(2))
		w.Expect(w.counts()).To(HaveKeyWithValue("nodeClaimCount", int64(1)))
	})
}

func TestRetire(t *testing.T) {
	t.Run("When Karpenter is to go machines whose claim is gone should go at any age, and it should count nothing once nothing is left", func(t *testing.T) {
		w := newBoth(t, nil, nil, object("Machine", "a", 0), object("LocalMachine", "a", 0), object("LocalMachine", "b", 0))
		w.report.Retire = true
		w.Expect(w.pass().RequeueAfter).To(Equal(leaving))
		w.Expect(w.left()).To(Equal([]string{"LocalMachine a"}))
		w.Expect(w.counts()).To(HaveKeyWithValue("nodeClaimCount", int64(2)))
		w.pass()
		w.Expect(w.counts()).To(HaveKeyWithValue("nodeClaimCount", int64(1)))
		w.pass()
		w.Expect(w.left()).To(BeEmpty())
		w.Expect(w.counts()).To(BeNil())
	})
	t.Run("When a machine is on its way out, or its claim is still there, it should not be deleted", func(t *testing.T) {
		w := newBoth(t, []string{"b"}, []string{"b"}, deleting(object("Machine", "a", 0)), object("LocalMachine", "a", 0), object("Machine", "b", 0), object("LocalMachine", "b", 0))
		w.report.Retire = true
		w.pass()
		w.Expect(w.left()).To(HaveLen(4))
		w.Expect(w.counts()).To(HaveKeyWithValue("nodeClaimCount", int64(2)))
		w.pass()
		w.Expect(w.writes).To(BeZero(), "nothing has changed")
	})
}
