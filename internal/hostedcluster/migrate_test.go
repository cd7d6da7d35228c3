package hostedcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

// movable is a hosted cluster of standard types with machines, and the world around it.
type movable struct {
	*world
	through client.WithWatch
	hcp     string // namespace of the control plane
	// others are the operators beside the migration; they work directly and through the proxy.
	others, othersThrough client.WithWatch
	// discovery remembers the kinds of the API server: they stay as they are, and each mover asks for them.
	discovery discovery.CachedDiscoveryInterface
}

// newMovable makes one with n machines, as programs leave them behind.
func newMovable(t testing.TB, n int) *movable {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	m := &movable{world: newWorld(t)}
	m.env.StartControllers(t)
	_, m.through = m.behindProxy(t)
	m.others, m.othersThrough = m.client, m.through
	disco, err := discovery.NewDiscoveryClientForConfig(m.env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	m.discovery = memory.NewMemCacheClient(disco)
	m.hcp = m.ns + "-demo"
	hc := m.withMachines(t)
	hc.Annotations[scopeKey] = hyperv1.LegacyScope
	g.Expect(m.client.Create(ctx, hc)).To(Succeed())
	t.Cleanup(func() { // one that still asks, or is locked, would hold up those of other tests
		none := patch.Metadata{Annotations: map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: nil, hyperv1.PrivateCAPIRollbackAnnotation: nil, lockKey: nil}}
		_ = m.client.Patch(context.WithoutCancel(ctx), m.hostedCluster(), none.Patch())
	})
	g.Expect(m.client.Create(ctx, &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "workers"}, Spec: hyperv1.NodePoolSpec{
		ClusterName: "demo", Replicas: ptr.To(int32(n)), Release: hyperv1.Release{Image: m.image}, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.LocalPlatform},
		Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
	}})).To(Succeed())
	g.Expect(testenv.Settle(m.client, 10, func(c client.WithWatch) func() error {
		m.others = c
		return func() error { return m.legacyPass(ctx) }
	})).To(Succeed())
	m.others = m.client
	m.makeMachines(t, n)
	for _, name := range []string{"hosted-cluster-config-operator", "cluster-autoscaler", migration.LegacyDeployment} {
		labels, ns := map[string]string{"name": name}, m.hcp
		if name == migration.LegacyDeployment {
			ns = m.ns
		}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		}}
		g.Expect(m.client.Create(ctx, d)).To(Succeed())
		d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1, 1
		g.Expect(m.client.Status().Update(ctx, d)).To(Succeed())
	}
	g.Expect(m.client.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.hcp, Name: "controller-leader-election-capi"}})).To(Succeed())
	g.Expect(m.runDeployments(ctx)).To(Succeed())
	return m
}

// legacyPass is one of the operator for standard types.
func (m *movable) legacyPass(ctx context.Context) error {
	r := m.reconciler(m.others)
	r.Capabilities.ClusterAPI, r.Scope = true, ptr.To(hyperv1.LegacyScope)
	_, err := r.Reconcile(ctx, m.request("demo"))
	return err
}

// privatePass is one of the operator for private types.
func (m *movable) privatePass(ctx context.Context, c client.Client) error {
	r := m.reconciler(c)
	r.Capabilities.ClusterAPI, r.PrivateCAPI, r.Direct = true, true, m.client
	_, err := r.Reconcile(ctx, m.request("demo"))
	return err
}

func owned(kind string, by client.Object, gv string, controller bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: gv, Kind: kind, Name: by.GetName(), UID: by.GetUID(), Controller: ptr.To(controller), BlockOwnerDeletion: ptr.To(true)}}
}

// makeMachines makes what Cluster API, the provider and the NodePool controller would.
func (m *movable) makeMachines(t testing.TB, n int) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	meta := func(name, finalizer string, owners []metav1.OwnerReference) metav1.ObjectMeta {
		o := metav1.ObjectMeta{Namespace: m.hcp, Name: name, OwnerReferences: owners, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo-abcde"}}
		if finalizer != "" {
			o.Finalizers = []string{finalizer}
		}
		return o
	}
	core, infra := clusterv1.GroupVersion.String(), infrav1.GroupVersion.String()
	cluster, key := &clusterv1.Cluster{}, client.ObjectKey{Namespace: m.hcp, Name: "demo-abcde"}
	g.Expect(m.client.Get(ctx, key, cluster)).To(Succeed())
	cluster.Finalizers = []string{clusterv1.ClusterFinalizer}
	g.Expect(m.client.Update(ctx, cluster, client.FieldOwner("manager"))).To(Succeed())
	cluster.Status.Phase, cluster.Status.ObservedGeneration = "Provisioned", cluster.Generation
	g.Expect(m.client.Status().Update(ctx, cluster, client.FieldOwner("manager"))).To(Succeed())
	hcp := &hyperv1.HostedControlPlane{}
	g.Expect(m.client.Get(ctx, client.ObjectKey{Namespace: m.hcp, Name: "demo"}, hcp)).To(Succeed())
	hcp.OwnerReferences = owned("Cluster", cluster, core, true)
	g.Expect(m.client.Update(ctx, hcp)).To(Succeed())
	lc := &infrav1.LocalCluster{}
	g.Expect(m.client.Get(ctx, client.ObjectKey{Namespace: m.hcp, Name: "demo"}, lc)).To(Succeed())
	lc.OwnerReferences, lc.Finalizers = owned("Cluster", cluster, core, true), []string{"localcluster.infrastructure.cluster.x-k8s.io"}
	g.Expect(m.client.Update(ctx, lc)).To(Succeed())
	template := &infrav1.LocalMachineTemplate{ObjectMeta: meta("workers-1", "", owned("Cluster", cluster, core, false))}
	template.Spec.Template.Spec.Image = "registry.example.com/node:1"
	g.Expect(m.client.Create(ctx, template)).To(Succeed())
	spec := func(name string) clusterv1.MachineSpec {
		return clusterv1.MachineSpec{ClusterName: "demo-abcde", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachine" + strings.Repeat("Template", 1-min(len(name), 1)), Name: name + strings.Repeat("workers-1", 1-min(len(name), 1))}}
	}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"pool": "workers"}}
	tmpl := clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "workers"}}, Spec: spec("")}
	md := &clusterv1.MachineDeployment{ObjectMeta: meta("workers", "cluster.x-k8s.io/machinedeployment", owned("Cluster", cluster, core, false)),
		Spec: clusterv1.MachineDeploymentSpec{ClusterName: "demo-abcde", Replicas: ptr.To(int32(n)), Selector: selector, Template: tmpl}}
	g.Expect(m.client.Create(ctx, md)).To(Succeed())
	ms := &clusterv1.MachineSet{ObjectMeta: meta("workers-x7", "cluster.x-k8s.io/machineset", owned("MachineDeployment", md, core, true)),
		Spec: clusterv1.MachineSetSpec{ClusterName: "demo-abcde", Replicas: ptr.To(int32(n)), Selector: selector, Template: tmpl}}
	g.Expect(m.client.Create(ctx, ms)).To(Succeed())
	ms.Status.ObservedGeneration, ms.Status.Replicas = ms.Generation, ptr.To(int32(n))
	g.Expect(m.client.Status().Update(ctx, ms)).To(Succeed())
	for i := range n {
		name := fmt.Sprintf("workers-x7-%03d", i)
		machine := &clusterv1.Machine{ObjectMeta: meta(name, clusterv1.MachineFinalizer, owned("MachineSet", ms, core, true)), Spec: spec(name)}
		machine.Spec.ProviderID = "local://" + name
		g.Expect(m.client.Create(ctx, machine, client.FieldOwner("manager"))).To(Succeed())
		machine.Status.NodeRef, machine.Status.Phase = clusterv1.MachineNodeReference{Name: name}, "Running"
		g.Expect(m.client.Status().Update(ctx, machine, client.FieldOwner("manager"))).To(Succeed())
		local := &infrav1.LocalMachine{ObjectMeta: meta(name, "localmachine.infrastructure.cluster.x-k8s.io", owned("Machine", machine, core, true))}
		local.Spec.Image = "registry.example.com/node:1"
		g.Expect(m.client.Create(ctx, local)).To(Succeed())
		pod := &corev1.Pod{ObjectMeta: meta(name, "", owned("LocalMachine", local, infra, true)), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "machine", Image: "i"}}}}
		g.Expect(m.client.Create(ctx, pod)).To(Succeed())
		local.Status.PodUID = string(pod.UID)
		g.Expect(m.client.Status().Update(ctx, local)).To(Succeed())
		g.Expect(m.client.Create(ctx, &corev1.Secret{ObjectMeta: meta(name, "", owned("Machine", machine, core, false))})).To(Succeed())
	}
}

// turn is what everybody else does beside the migration: the operators acknowledge locks, the Deployments' controller and the
// control-plane-operator do their work.
func (m *movable) turn(ctx context.Context) error {
	hc, err := m.get(ctx, "demo")
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if lock := hc.Annotations[hyperv1.PrivateCAPIMigrationLockAnnotation]; hc.Annotations[lockKey] == "true" && lock != "" {
		if err := m.acknowledgePool(ctx, lock); err != nil {
			return err
		}
		if err := m.legacyPass(ctx); err != nil {
			return err
		}
		if err := m.privatePass(ctx, m.othersThrough); err != nil {
			return err
		}
	}
	return m.runDeployments(ctx)
}

// acknowledgePool is what the NodePool controller does.
func (m *movable) acknowledgePool(ctx context.Context, lock string) error {
	pool := &hyperv1.NodePool{}
	err := m.others.Get(ctx, client.ObjectKey{Namespace: m.ns, Name: "workers"}, pool)
	if err != nil || pool.Annotations[hyperv1.PrivateCAPIMigrationAckAnnotation] == lock {
		return client.IgnoreNotFound(err)
	}
	return m.others.Patch(ctx, pool, patch.Annotation(hyperv1.PrivateCAPIMigrationAckAnnotation, &lock))
}

func (m *movable) runDeployments(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	if err := m.client.List(ctx, list, client.InNamespace(m.hcp)); err != nil {
		return err
	}
	cpo := slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return d.Name == "control-plane-operator" && *d.Spec.Replicas > 0 })
	for i := range list.Items {
		d := &list.Items[i]
		if cpo && *d.Spec.Replicas == 0 && (d.Name == "hosted-cluster-config-operator" || d.Name == "cluster-autoscaler") {
			d.Spec.Replicas = ptr.To(int32(1))
			if err := m.client.Update(ctx, d); err != nil {
				return err
			}
		}
		n := *d.Spec.Replicas
		if d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == n {
			continue
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		if err := m.client.Status().Update(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// mover is a migration controller that writes through c.
func (m *movable) mover(c client.WithWatch) *migration.Controller {
	private := m.reconciler(m.through)
	private.Capabilities.ClusterAPI, private.PrivateCAPI, private.Direct = true, true, m.client
	return &migration.Controller{Direct: c, Cached: c, Discovery: m.discovery, Clock: clock.RealClock{}, Deployer: newMover(private, c), Namespace: m.ns}
}

// migrate asks for a move and works until it is over, or a pass fails. How long all of it takes depends on how fast the machine is: it is given up
// when its condition, which names the phase, has said nothing new for a while.
func (m *movable) migrate(ctx context.Context, c *migration.Controller, ask string) error {
	if ask != "" {
		hc := m.hostedCluster()
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, ask)
		if err := m.client.Patch(ctx, hc, client.RawPatch("application/merge-patch+json", body)); err != nil {
			return err
		}
	}
	said := map[string]bool{}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err := m.turn(ctx); err != nil && !apierrors.IsConflict(err) {
			return err
		}
		if _, err := c.Reconcile(ctx, m.request("demo")); err != nil {
			return err
		}
		hc, err := m.get(ctx, "demo")
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		if c := conditions.Get(hc.Status.Conditions, hyperv1.PrivateCAPIMigrationProgressing); c != nil && !said[c.Reason+" "+c.Message] {
			said[c.Reason+" "+c.Message] = true
			deadline = time.Now().Add(patience)
		}
		a := hc.Annotations
		if a[lockKey] == "" && a[hyperv1.PrivateCAPIMigrateAnnotation] == "" && a[hyperv1.PrivateCAPIRollbackAnnotation] == "" {
			return nil
		}
	}
	hc, _ := m.get(ctx, "demo")
	return fmt.Errorf("the move is not over: %v\n%v", hc.Annotations, hc.Status.Conditions)
}

// machinesAre are the names of objects of Cluster API in the one and the other group, and the pods of machines with their UIDs.
func (m *movable) state(t testing.TB, group string) (objects []string) {
	t.Helper()
	for _, kind := range [][3]string{{group, "v1beta2", "Cluster"}, {group, "v1beta2", "MachineDeployment"}, {group, "v1beta2", "MachineSet"}, {group, "v1beta2", "Machine"},
		{"infrastructure." + group, "v1beta1", "LocalCluster"}, {"infrastructure." + group, "v1beta1", "LocalMachineTemplate"}, {"infrastructure." + group, "v1beta1", "LocalMachine"}} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(unstructuredOf(kind[0], kind[1], kind[2]+"List").GroupVersionKind())
		NewWithT(t).Expect(m.client.List(t.Context(), list, client.InNamespace(m.hcp))).To(Succeed())
		for _, item := range list.Items {
			objects = append(objects, kind[2]+"/"+item.Name)
			for key := range item.Annotations {
				if strings.HasSuffix(key, "/paused") || strings.HasSuffix(key, "/migration-copy") {
					objects = append(objects, kind[2]+"/"+item.Name+" has "+key)
				}
			}
		}
	}
	return objects
}

func (m *movable) pods(t testing.TB) (uids []string) {
	t.Helper()
	list := &corev1.PodList{}
	NewWithT(t).Expect(m.client.List(t.Context(), list, client.InNamespace(m.hcp), client.HasLabels{clusterv1.ClusterNameLabel})).To(Succeed())
	for _, p := range list.Items {
		uids = append(uids, fmt.Sprint(p.Name, " ", p.UID, " ", p.DeletionTimestamp))
	}
	return uids
}

func TestMigration(t *testing.T) {
	m := newMovable(t, 3)
	ctx := t.Context()
	standard, pods := m.state(t, translate.Standard), m.pods(t)
	c := m.mover(m.client)
	t.Run("When a hosted cluster is moved all of its objects should be private, and no machine should notice", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(standard).To(HaveLen(11))
		g.Expect(m.migrate(ctx, c, hyperv1.PrivateCAPIMigrateAnnotation)).To(Succeed())
		g.Expect(m.condition(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)()).To(Equal("False/Completed"), m.message(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing))
		g.Expect(m.state(t, translate.Private)).To(Equal(standard))
		g.Expect(m.state(t, translate.Standard)).To(BeEmpty())
		g.Expect(m.pods(t)).To(Equal(pods))
	})
	t.Run("When both operators look at it afterwards they should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(m.legacyPass(ctx)).To(Succeed())
		for range 3 {
			g.Expect(m.privatePass(ctx, m.through)).To(Succeed())
		}
		testenv.ExpectQuiet(t, m.through, func(through client.WithWatch) error { return m.privatePass(ctx, through) })
		testenv.ExpectQuiet(t, m.client, func(direct client.WithWatch) error {
			_, err := m.mover(direct).Reconcile(ctx, m.request("demo"))
			return err
		})
		g.Expect(m.condition(ctx, "demo", hyperv1.PrivateCAPITypes)()).To(Equal("True/PrivateTypesInUse"))
		g.Expect(m.pods(t)).To(Equal(pods))
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(m.client.Get(ctx, client.ObjectKey{Namespace: m.hcp, Name: "demo"}, hcp)).To(Succeed())
		g.Expect(hcp.Annotations).To(HaveKeyWithValue(privateKey, "true"))
		g.Expect(hcp.OwnerReferences).To(HaveLen(1))
		g.Expect(hcp.OwnerReferences[0].APIVersion).To(Equal(translate.Private + "/v1beta2"))
	})
	t.Run("When it is asked back everything should be in the standard groups again", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(m.migrate(ctx, c, hyperv1.PrivateCAPIRollbackAnnotation)).To(Succeed())
		g.Expect(m.condition(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)()).To(Equal("False/Completed"), m.message(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing))
		g.Expect(m.state(t, translate.Standard)).To(Equal(standard))
		g.Expect(m.state(t, translate.Private)).To(BeEmpty())
		g.Expect(m.pods(t)).To(Equal(pods))
		for range 3 {
			g.Expect(m.legacyPass(ctx)).To(Succeed())
		}
		testenv.ExpectQuiet(t, m.client, func(c client.WithWatch) error {
			r := m.reconciler(c)
			r.Capabilities.ClusterAPI, r.Scope = true, ptr.To(hyperv1.LegacyScope)
			_, err := r.Reconcile(ctx, m.request("demo"))
			return err
		})
		hc, err := m.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hc.Annotations).To(And(HaveKeyWithValue(scopeKey, "legacy"), Not(HaveKey(privateKey)), HaveKey(hyperv1.PrivateCAPIMigrationFailedAnnotation)))
	})
}
