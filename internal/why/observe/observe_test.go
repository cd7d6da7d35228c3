package observe_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hcp.internal/platform/config"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/internal/why"
	"hcp.internal/platform/internal/why/observe"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme, packagesv1.AddToScheme, clusterv1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

// created stores objects, and then what their status is to be.
func created(t testing.TB, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		want := obj.DeepCopyObject().(client.Object)
		if err := c.Create(context.Background(), obj); err != nil {
			t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
		if _, ok := obj.(*corev1.Namespace); ok {
			continue
		}
		want.SetResourceVersion(obj.GetResourceVersion())
		want.SetUID(obj.GetUID())
		if err := c.Status().Update(context.Background(), want); err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("writing the status of %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func said(list *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(list, time.Now().Add(-10*time.Minute), conditions.New(kind, status, reason, message))
}

// cluster is a hosted cluster whose etcd has a member that fits on no node.
func cluster(t testing.TB, c client.Client, ns, name string) {
	hc := testenv.HostedCluster(ns, name)
	said(&hc.Status.Conditions, hyperv1.HostedClusterAvailable, metav1.ConditionFalse, hyperv1.EtcdWaitingForQuorumReason, "1 of 3 members")
	control := ns + "-" + name
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: control, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: ns + "/" + name}}}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: control, Name: name, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: ns + "/" + name}},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: hc.Spec.Release.Image, PullSecret: hc.Spec.PullSecret, Platform: hc.Spec.Platform, Networking: hc.Spec.Networking, Services: hc.Spec.Services,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}}}
	said(&hcp.Status.Conditions, hyperv1.EtcdAvailable, metav1.ConditionFalse, hyperv1.EtcdWaitingForQuorumReason, "1 of 3 etcd members are ready")
	labels := map[string]string{"app": "etcd", "hypershift.openshift.io/control-plane-component": "etcd"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "registry.example.com/etcd:1"}}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: control, Name: "etcd"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3)),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "etcd"}}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}}}
	lost := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: control, Name: "etcd-1", Labels: labels}, Spec: pod, Status: corev1.PodStatus{Phase: corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient memory."}}}}
	created(t, c, hc, space, hcp, set, lost)
}

func TestSnapshot(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, scheme())
	explain := func(t *testing.T, reader client.Reader, of why.Object) why.Answer {
		snap, err := observe.Observer{Client: reader, OperatorNamespace: "nobody", PackageOperatorNamespace: "nobody-either"}.Snapshot(t.Context(), of)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(snap.Unread).To(BeEmpty())
		return why.Explain(snap, of)
	}
	t.Run("When a member of etcd fits on no node it should say so, with few requests", func(t *testing.T) {
		g := NewWithT(t)
		ns := env.Namespace(t)
		cluster(t, c, ns, "demo")
		var requests atomic.Int32
		counting := interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				requests.Add(1)
				return c.Get(ctx, key, obj, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				requests.Add(1)
				return c.List(ctx, list, opts...)
			}})
		a := explain(t, counting, why.Object{Kind: "HostedCluster", Namespace: ns, Name: "demo"})
		g.Expect(a.Cause).To(ContainSubstring("pod etcd-1 fits on no node: 0/3 nodes are available: 3 Insufficient memory"))
		g.Expect(a.Rule).To(Equal("pod-unschedulable"))
		g.Expect(a.Chain).To(HaveLen(4))
		g.Expect(requests.Load()).To(BeNumerically("<=", 20))
		g.Expect(explain(t, c, why.Object{Kind: "ControlPlaneComponent", Namespace: ns + "-demo", Name: "none"}).Rule).To(Equal("not-found"))
	})
	t.Run("When a machine can't be drained it should name the budget", func(t *testing.T) {
		g := NewWithT(t)
		ns := env.Namespace(t)
		cluster(t, c, ns, "demo")
		pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "workers", Finalizers: []string{hyperv1.NodePoolFinalizer}}, Spec: hyperv1.NodePoolSpec{ClusterName: "demo", Replicas: ptr.To(int32(1)),
			Release: hyperv1.Release{Image: "registry.example.com/release:1"}, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform}, Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace}}}
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns + "-demo", Name: "workers-a", Finalizers: []string{clusterv1.MachineFinalizer}, Annotations: map[string]string{hyperv1.NodePoolAnnotation: ns + "/workers"}},
			Spec: clusterv1.MachineSpec{ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")}, InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalMachine", Name: "x"}}}
		said(&m.Status.Conditions, clusterv1.MachineDeletingCondition, metav1.ConditionTrue, clusterv1.MachineDeletingDrainingNodeReason,
			"Drain not completed yet (started at 2026-11-23T11:00:00Z):\n* Pod default/web-0: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 1 healthy pods and has 1 currently")
		created(t, c, pool, m)
		g.Expect(c.Delete(t.Context(), m)).To(Succeed())
		g.Expect(c.Delete(t.Context(), pool)).To(Succeed())
		t.Cleanup(func() {
			for _, obj := range []client.Object{m, pool} {
				_ = c.Patch(context.Background(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
			}
		})
		for _, of := range []why.Object{{Kind: "NodePool", Namespace: ns, Name: "workers"}, {Kind: "Machine", Namespace: ns + "-demo", Name: "workers-a"}} {
			a := explain(t, c, of)
			g.Expect(a.Cause).To(ContainSubstring("The disruption budget web needs 1 healthy pods"), "%+v", a)
			g.Expect(a.Deleting).To(BeTrue())
			g.Expect(a.Rule).To(Equal("deletion-drain-blocked"))
		}
	})
	t.Run("When a package's image can't be read it should say so", func(t *testing.T) {
		g := NewWithT(t)
		definitions, err := config.PackageOperatorCRDs()
		g.Expect(err).NotTo(HaveOccurred())
		env.Install(t, definitions...)
		ns := env.Namespace(t)
		p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "addon"}, Spec: packagesv1.PackageSpec{Image: "registry.example.com/addon:1"}}
		said(&p.Status.Conditions, packagesv1.ConditionUnpacked, metav1.ConditionFalse, packagesv1.ReasonImagePullBackOff, "image registry.example.com/addon:1: 404")
		created(t, env.Client(t, scheme()), p)
		a := explain(t, env.Client(t, scheme()), why.Object{Kind: "Package", Namespace: ns, Name: "addon"})
		g.Expect(a.Rule).To(Equal("package-image-unreadable"))
	})
	t.Run("When a cluster-scoped package collides with an object it should say so, and name its kinds as they are", func(t *testing.T) {
		g := NewWithT(t)
		c := env.Client(t, scheme())
		p := &packagesv1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: packagesv1.PackageSpec{Image: "registry.example.com/wide:1"}}
		said(&p.Status.Conditions, packagesv1.ConditionAvailable, metav1.ConditionFalse, "ObjectSetNotAvailable", "not available")
		selector := metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		od := &packagesv1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}
		od.Spec.Selector, od.Spec.Template.Metadata.Labels = selector, selector.MatchLabels
		said(&od.Status.Conditions, packagesv1.ConditionAvailable, metav1.ConditionFalse, "ObjectSetNotAvailable", "not available")
		created(t, c, p, od)
		set := &packagesv1.ClusterObjectSet{ObjectMeta: metav1.ObjectMeta{Name: "wide-1", OwnerReferences: []metav1.OwnerReference{{APIVersion: packagesv1.GroupVersion.String(), Kind: "ClusterObjectDeployment", Name: "wide", UID: od.UID}}}}
		set.Spec.Revision = 1
		said(&set.Status.Conditions, packagesv1.ConditionAvailable, metav1.ConditionFalse, packagesv1.ReasonCollisionDetected, "Service x/y is there already")
		created(t, c, set)
		t.Cleanup(func() {
			for _, obj := range []client.Object{p, od, set} {
				_ = c.Delete(context.Background(), obj)
			}
		})
		a := explain(t, c, why.Object{Kind: "ClusterPackage", Name: "wide"})
		g.Expect(a.Rule).To(Equal("object-collision"), "%+v", a)
		g.Expect(a.Object.String()).To(Equal("ClusterPackage wide"))
		g.Expect(a.Chain[len(a.Chain)-1].Object.Kind).To(Equal("ClusterObjectSet"))
		g.Expect(explain(t, c, why.Object{Kind: "ClusterObjectDeployment", Name: "wide"}).Rule).To(Equal("object-collision"))
	})
	t.Run("When there is no such object it should be an error that says so", func(t *testing.T) {
		g := NewWithT(t)
		_, err := observe.Observer{Client: c}.Snapshot(t.Context(), why.Object{Kind: "HostedCluster", Namespace: "default", Name: "nobody"})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		_, err = observe.Observer{Client: c}.Snapshot(t.Context(), why.Object{Kind: "Secret", Namespace: "default", Name: "x"})
		g.Expect(err).To(MatchError(ContainSubstring("use one of HostedCluster")))
	})
}

// BenchmarkThousand asks about one of a thousand hosted clusters, each with a control plane's namespace.
func BenchmarkThousand(b *testing.B) {
	env := testenv.Start(b)
	c := env.Client(b, scheme())
	ns := env.Namespace(b)
	const clusters = 1000
	var wait sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range clusters {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer wait.Done()
			cluster(b, c, ns, fmt.Sprintf("c%d", i))
			<-slots
		}()
	}
	wait.Wait()
	of := why.Object{Kind: "HostedCluster", Namespace: ns, Name: "c500"}
	for b.Loop() {
		snap, err := observe.Observer{Client: c}.Snapshot(b.Context(), of)
		if err != nil {
			b.Fatal(err)
		}
		if a := why.Explain(snap, of); a.Rule != "pod-unschedulable" {
			b.Fatalf("%+v", a)
		}
	}
}
