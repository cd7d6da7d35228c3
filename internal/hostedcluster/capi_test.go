package hostedcluster

import (
	"context"
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
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
	t.Run("When a pause ends while the next release has to wait the cluster should go on as it is", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		ctx := t.Context()
		ask := func(spec string) {
			g.Expect(w.client.Patch(ctx, w.hostedCluster(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+spec+`}`)))).To(Succeed())
			g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed())
		}
		g.Expect(w.client.Create(ctx, w.withMachines(t))).To(Succeed())
		g.Expect(w.settleWithMachines(ctx, w.client)).To(Succeed())
		hcp, cluster := &hyperv1.HostedControlPlane{}, &clusterv1.Cluster{}
		look := func() {
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo"}, hcp)).To(Succeed())
			g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.ns + "-demo", Name: "demo-abcde"}, cluster)).To(Succeed())
		}
		look()
		now := metav1.Now()
		hcp.Status.VersionStatus = &hyperv1.ClusterVersionStatus{Desired: configv1.Release{Image: w.image, Version: "1.35.5"}, AvailableUpdates: []configv1.Release{}, ObservedGeneration: 1,
			History: []configv1.UpdateHistory{{Image: w.image, Version: "1.35.5", State: configv1.CompletedUpdate, StartedTime: now, CompletionTime: &now}}}
		conditions.Set(&hcp.Status.Conditions, now.Time, conditions.False(hyperv1.ClusterVersionUpgradeable, hyperv1.FromClusterVersionReason, "etcd is sick"))
		g.Expect(w.client.Status().Update(ctx, hcp)).To(Succeed())

		ask(`{"pausedUntil":"true"}`)
		look()
		g.Expect(hcp.Spec.PausedUntil).To(HaveValue(Equal("true")))
		g.Expect(cluster.Spec.Paused).To(HaveValue(BeTrue()))
		refs := cluster.Spec.InfrastructureRef
		ask(`{"release":{"image":"` + w.next + `"}}`)
		ask(`{"pausedUntil":null}`)
		g.Expect(w.condition(ctx, "demo", hyperv1.HostedClusterProgressing)()).To(Equal("False/" + hyperv1.BlockedReason))
		look()
		g.Expect(hcp.Spec.PausedUntil).To(BeNil())
		g.Expect(hcp.Spec.ReleaseImage).To(Equal(w.image))
		g.Expect(cluster.Spec.Paused).To(HaveValue(BeFalse()))
		g.Expect(cluster.Spec.InfrastructureRef).To(Equal(refs))
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
