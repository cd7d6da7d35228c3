package hostedcluster

import (
	"context"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/platform/local"
	"hcp.internal/platform/internal/testenv"
)

// withMachines gives releases what platform Local needs.
func (w *world) withMachines(t testing.TB) *hyperv1.HostedCluster {
	tags := w.registry.KubernetesTags()
	maps.Copy(tags, map[string]string{"cluster-capi-controllers": tags["etcd"], "local-node": tags["etcd"]})
	w.image = w.registry.PushRelease(t, "1.35.5", tags)
	return w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Spec.Platform.Type = hyperv1.LocalPlatform })
}

// settleWithMachines is settle of an operator whose management cluster serves Cluster API.
func (w *world) settleWithMachines(ctx context.Context, c client.WithWatch) error {
	run := func(c client.Client) error {
		r := w.reconciler(c)
		r.Capabilities.ClusterAPI = true
		_, err := r.Reconcile(ctx, w.request("demo"))
		return err
	}
	for range 30 {
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		if err := run(counting); err != nil || counting.Writes() == 0 {
			return err
		}
	}
	return context.DeadlineExceeded
}

func TestClusterAPI(t *testing.T) {
	t.Run("When the platform has machines it should run Cluster API, follow the control plane, pause, and remove it", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.withMachines(t))).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed())
		ns := w.ns + "-demo"
		for name, image := range map[string]string{"cluster-api": "/usr/bin/manager", "capi-provider": "/usr/bin/hcp-operators"} {
			d := &appsv1.Deployment{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, d)).To(Succeed())
			g.Expect(d.Spec.Template.Spec.Containers[0].Command[0]).To(Equal(image))
			g.Expect(d.OwnerReferences).To(BeEmpty())
			g.Expect(d.Spec.Replicas).To(HaveValue(BeZero()), "there are no machines to manage yet")
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &rbacv1.Role{})).To(Succeed())
		}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Name: "hypershift-cluster-api-" + ns}, &rbacv1.ClusterRoleBinding{})).To(Succeed())
		secret := &corev1.Secret{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "capi-webhooks-tls"}, secret)).To(Succeed())
		cluster, key := &clusterv1.Cluster{}, client.ObjectKey{Namespace: ns, Name: "demo-abcde"}
		g.Expect(w.client.Get(ctx, key, cluster)).To(Succeed())
		g.Expect(cluster.Spec.ControlPlaneRef).To(Equal(clusterv1.ContractVersionedObjectReference{APIGroup: "hypershift.openshift.io", Kind: "HostedControlPlane", Name: "demo"}))
		g.Expect(cluster.Spec.InfrastructureRef).To(Equal(clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalCluster", Name: "demo"}))

		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "demo"}, hcp)).To(Succeed())
		hcp.Status.Initialized, hcp.Status.Ready = true, true
		hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "10.97.0.1", Port: 6443}
		g.Expect(w.client.Status().Update(ctx, hcp)).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed())
		g.Expect(w.client.Get(ctx, key, cluster)).To(Succeed())
		g.Expect(cluster.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
		g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)).To(BeTrue())
		infra := &infrav1.LocalCluster{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "demo"}, infra)).To(Succeed())
		g.Expect(infra.Spec.ControlPlaneEndpoint).To(Equal(infrav1.APIEndpoint{Host: "10.97.0.1", Port: 6443}))

		g.Expect(w.client.Patch(ctx, w.hostedCluster(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"pausedUntil":"true"}}`)))).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed())
		g.Expect(w.client.Get(ctx, key, cluster)).To(Succeed())
		g.Expect(cluster.Spec.Paused).To(HaveValue(BeTrue()))

		cluster.Finalizers = []string{clusterv1.ClusterFinalizer}
		g.Expect(w.client.Update(ctx, cluster)).To(Succeed())
		g.Expect(w.client.Delete(ctx, w.hostedCluster())).To(Succeed())
		r := w.reconciler(w.client)
		r.Capabilities.ClusterAPI = true
		_, err := r.Reconcile(ctx, w.request("demo"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.client.Get(ctx, key, cluster)).To(Succeed())
		g.Expect(cluster.Spec.Paused).To(HaveValue(BeFalse()))
		g.Expect(cluster.DeletionTimestamp).NotTo(BeNil())
	})
	t.Run("When the first NodePool comes it should start Cluster API, and leave it running when the last goes", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(w.client.Create(ctx, w.withMachines(t))).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed())
		replicas := func(name string) *int32 {
			d := &appsv1.Deployment{}
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: name}, d)).To(Succeed())
			return d.Spec.Replicas
		}
		pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "workers"}, Spec: hyperv1.NodePoolSpec{
			ClusterName: "demo", Release: hyperv1.Release{Image: w.image}, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.LocalPlatform},
			Replicas: ptr.To[int32](1), Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace}, Arch: hyperv1.ArchitectureAMD64,
		}}
		g.Expect(w.client.Create(ctx, pool)).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed())
		g.Expect(replicas("cluster-api")).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(replicas("capi-provider")).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(w.client.Delete(ctx, pool)).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed())
		g.Expect(replicas("cluster-api")).To(HaveValue(BeEquivalentTo(1)), "the Cluster has its finalizer")
		g.Expect(replicas("capi-provider")).To(HaveValue(BeEquivalentTo(1)))
	})
	t.Run("When Cluster API is not installed it should say what to run", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), w.withMachines(t))).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(MatchError(ContainSubstring("run hypershift install")))
	})
}

func TestTeardownOfCluster(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	at := func(seconds int) time.Time { return deleted.Add(time.Duration(seconds) * time.Second) }
	left := func(change func(*remains)) remains {
		r := remains{
			hc:        &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}},
			namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}},
			cluster:   &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo-abcde"}},
			manager:   &appsv1.Deployment{Status: appsv1.DeploymentStatus{AvailableReplicas: 1}},
			contained: true,
		}
		change(&r)
		return r
	}
	being := func(r *remains) { r.cluster.DeletionTimestamp = &deleted }
	for name, tc := range map[string]struct {
		left  remains
		after int
		check func(Gomega, teardown)
	}{
		"When the cluster is still there it should delete it and the control plane, and keep the namespace": {
			left: left(func(r *remains) { r.hcp = &hyperv1.HostedControlPlane{} }),
			check: func(g Gomega, p teardown) {
				g.Expect(p.delete).To(HaveLen(2))
				g.Expect(p.waiting).To(HaveLen(2))
			}},
		"When it is paused it should be let go on": {
			left:  left(func(r *remains) { r.cluster.Spec.Paused = ptr.To(true) }),
			check: func(g Gomega, p teardown) { g.Expect(p.unpauseCluster).To(BeTrue()) }},
		"When the manager works it should have its time": {
			left: left(being), after: 60,
			check: func(g Gomega, p teardown) { g.Expect(p.stripCluster).To(BeFalse()) }},
		"When the manager works and does not remove the finalizer it should be removed": {
			left: left(being), after: 180,
			check: func(g Gomega, p teardown) { g.Expect(p.stripCluster).To(BeTrue()) }},
		"When the manager is gone it should not be waited for": {
			left: left(func(r *remains) { being(r); r.manager = nil }), after: 2,
			check: func(g Gomega, p teardown) { g.Expect(p.stripCluster).To(BeTrue()) }},
		"When the control plane is still there the manager should be left alone": {
			left: left(func(r *remains) { being(r); r.manager = nil; r.hcp = &hyperv1.HostedControlPlane{} }), after: 600,
			check: func(g Gomega, p teardown) { g.Expect(p.stripCluster).To(BeFalse()) }},
		"When the machines are outside of the namespace nothing should be forced": {
			left: left(func(r *remains) { being(r); r.manager = nil; r.contained = false }), after: 600,
			check: func(g Gomega, p teardown) { g.Expect(p.stripCluster).To(BeFalse()) }},
		"When machines have to go with the cluster Cluster API should know, for it drains none then": {
			left: left(func(r *remains) {
				r.hcp = &hyperv1.HostedControlPlane{}
				r.pools = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}}
			}),
			check: func(g Gomega, p teardown) {
				g.Expect(p.delete).To(ConsistOf(BeAssignableToTypeOf(&clusterv1.Cluster{})))
				g.Expect(p.waiting).To(ConsistOf(ContainSubstring("NodePool")))
			}},
		"When machines wait for a manager that does not run they should not for ever": {
			left: left(func(r *remains) {
				r.manager.Status.AvailableReplicas = 0
				r.pools = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}}
			}), after: 60,
			check: func(g Gomega, p teardown) { g.Expect(p.orphans).To(BeTrue()) }},
		"When all that remove machines work they should have all the time they need": {
			left: left(func(r *remains) {
				r.provider = r.manager
				r.pools = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}}
			}), after: 3600,
			check: func(g Gomega, p teardown) { g.Expect(p.orphans).To(BeFalse()) }},
		"When the namespace ends with those who would remove machines they should not be waited for": {
			left:  left(func(r *remains) { r.cluster = nil; r.namespace.DeletionTimestamp = &deleted }),
			check: func(g Gomega, p teardown) { g.Expect(p.orphans).To(BeTrue()) }},
		"When it is gone the namespace should go": {
			left: left(func(r *remains) { r.cluster = nil }),
			check: func(g Gomega, p teardown) {
				g.Expect(p.delete).To(ConsistOf(BeAssignableToTypeOf(&corev1.Namespace{})))
			}},
	} {
		t.Run(name, func(t *testing.T) { tc.check(NewWithT(t), planTeardown(tc.left, at(tc.after))) })
	}
}

func TestOrphanedMachines(t *testing.T) {
	t.Run("When machines are orphaned it should let go those that are being deleted, and no other", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		ctx := t.Context()
		machine := func(name string) *clusterv1.Machine {
			return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Finalizers: []string{clusterv1.MachineFinalizer}},
				Spec: clusterv1.MachineSpec{ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")},
					InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalMachine", Name: name}}}
		}
		g.Expect(w.client.Create(ctx, machine("kept"))).To(Succeed())
		g.Expect(w.client.Create(ctx, machine("gone"))).To(Succeed())
		g.Expect(w.client.Delete(ctx, machine("gone"))).To(Succeed())
		for range 2 {
			g.Expect(local.Platform{}.DeleteOrphanedMachines(ctx, w.client, nil, w.ns)).To(Succeed())
		}
		list := &clusterv1.MachineList{}
		g.Expect(w.client.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Name).To(Equal("kept"))
		g.Expect(list.Items[0].Finalizers).NotTo(BeEmpty())
	})
}
