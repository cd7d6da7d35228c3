package nodepool

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/watches"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/operator"
)

const (
	patience = time.Minute // on a machine that builds other things, too
	often    = 20 * time.Millisecond
)

// start runs the controller itself, with its caches, indexes and watches, until the test ends.
func (w *world) start(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := rest.CopyConfig(w.env.Config)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: w.client.Scheme(), Cache: watches.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: process.Queue(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	sources, err := operator.NewSourceCache(cfg, mgr)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.Add(sources)).To(Succeed())
	r := w.reconciler(mgr.GetClient())
	r.Events = mgr.GetEventRecorder(names.HypershiftOperator)
	r.Live, r.Clock, r.Scope = mgr.GetAPIReader(), clock.RealClock{}, &w.ns // other tests run operators of their own
	g.Expect(r.SetupWithManager(mgr, sources)).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	g.Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the controller: %v", err)
		}
	})
}

// events are those about the pool, sorted.
func (w *world) events(t testing.TB) (found []string) {
	t.Helper()
	list := &corev1.EventList{}
	if err := w.client.List(t.Context(), list, client.InNamespace(w.ns)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if e := &list.Items[i]; e.InvolvedObject.Kind == "NodePool" && e.InvolvedObject.Name == w.pool(t).Name {
			found = append(found, e.Type+" "+e.Reason)
		}
	}
	slices.Sort(found)
	return found
}

// complete plays Cluster API's controller of a MachineDeployment that has all its machines. The operator may write it meanwhile.
func (w *world) complete(ctx context.Context, md *clusterv1.MachineDeployment) error {
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
		return err
	}
	md.Status = completeStatus(md)
	return w.client.Status().Update(ctx, md)
}

func TestOperator(t *testing.T) {
	t.Run("When the operator runs it should follow configuration, machines and deletion by events", func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "tuning"}}
		g.Expect(w.client.Create(ctx, examplePool(w.ns, func(np *hyperv1.NodePool) { np.Spec.Config = []corev1.LocalObjectReference{{Name: "tuning"}} }))).To(Succeed())
		validConfig := func() string { return w.condition(t, hyperv1.NodePoolValidMachineConfigConditionType) }
		g.Eventually(validConfig, patience, often).Should(Equal("False/ValidationFailed"))
		config.Data = map[string]string{configKey: machineConfig("/etc/motd", "data:,a")}
		g.Expect(w.client.Create(ctx, config)).To(Succeed())
		g.Eventually(validConfig, patience, often).Should(Equal("True/AsExpected"))
		g.Eventually(func() []string { return w.events(t) }, patience, often).Should(ContainElements("Warning ValidationFailed", "Normal ValidMachineConfig"))
		md := &clusterv1.MachineDeployment{}
		key := client.ObjectKey{Namespace: w.hcpNS, Name: "workers"}
		g.Eventually(func() error { return w.client.Get(ctx, key, md) }, patience, often).Should(Succeed())

		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: "workers-1", Labels: md.Spec.Template.Labels},
			Spec: clusterv1.MachineSetSpec{ClusterName: "demo-abcde", Replicas: md.Spec.Replicas, Selector: md.Spec.Selector, Template: md.Spec.Template}}
		g.Expect(w.client.Create(ctx, set)).To(Succeed())
		set.Status = clusterv1.MachineSetStatus{Replicas: md.Spec.Replicas, AvailableReplicas: md.Spec.Replicas}
		g.Expect(w.client.Status().Update(ctx, set)).To(Succeed())
		g.Eventually(func() error { return w.complete(ctx, md) }, patience, often).Should(Succeed())
		g.Eventually(func() string { return w.pool(t).Status.Version }, patience, often).Should(Equal("1.36.3"))
		g.Eventually(func() []string { return w.events(t) }, patience, often).Should(ContainElement("Normal VersionUpdated"))
		g.Expect(slices.DeleteFunc(w.events(t), func(e string) bool { return e != "Warning ValidationFailed" })).To(HaveLen(1), "it was told once")
		g.Eventually(func() int32 { return w.pool(t).Status.Replicas }, patience, often).Should(BeEquivalentTo(2))
		machine := w.machine(t, "workers-1", md)
		g.Eventually(func() string { return w.condition(t, hyperv1.NodePoolAllMachinesReadyConditionType) }, patience, often).Should(Equal("False/Pending"))

		g.Expect(w.client.Delete(ctx, w.pool(t))).To(Succeed())
		g.Eventually(func(g Gomega) {
			g.Expect(apierrors.IsNotFound(w.client.Get(ctx, key, md))).To(BeTrue())
			c := findCondition(w.pool(t).Status.Conditions, hyperv1.NodePoolReadyConditionType)
			g.Expect(c.Reason).To(Equal(ReasonDeleting))
			g.Expect(c.Message).To(ContainSubstring("workers-1"))
		}, patience, often).Should(Succeed())
		before := &clusterv1.Machine{}
		g.Eventually(func() error {
			if err := w.client.Get(ctx, client.ObjectKeyFromObject(machine), before); err != nil {
				return err
			}
			if before.DeletionTimestamp.IsZero() {
				return fmt.Errorf("the Machine is not deleted yet")
			}
			before.Finalizers = nil
			return w.client.Update(ctx, before)
		}, patience, often).Should(Succeed())
		g.Eventually(func() bool {
			return apierrors.IsNotFound(w.client.Get(ctx, w.request().NamespacedName, &hyperv1.NodePool{}))
		}, patience, often).Should(BeTrue())
		w.expectNothing(t)
	})
}

// expectNothing asserts that nothing of the pool is left.
func (w *world) expectNothing(t testing.TB) {
	g := NewWithT(t)
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineHealthCheckList{}} {
		g.Expect(w.client.List(t.Context(), list, client.InNamespace(w.hcpNS), client.MatchingLabels(ownLabels()))).To(Succeed())
		g.Expect(list).To(HaveField("Items", BeEmpty()), "%T", list)
	}
}

// completeStatus is that of a MachineDeployment whose machines are all as they are to be.
func completeStatus(md *clusterv1.MachineDeployment) clusterv1.MachineDeploymentStatus {
	n := md.Spec.Replicas
	return clusterv1.MachineDeploymentStatus{ObservedGeneration: md.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpToDateReplicas: n}
}

// machine makes a Machine as Cluster API would, with its finalizer.
func (w *world) machine(t testing.TB, name string, md *clusterv1.MachineDeployment) *clusterv1.Machine {
	t.Helper()
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.hcpNS, Name: name, Labels: md.Spec.Template.Labels, Annotations: md.Spec.Template.Annotations, Finalizers: []string{clusterv1.MachineFinalizer}},
		Spec:       md.Spec.Template.Spec,
	}
	NewWithT(t).Expect(w.client.Create(t.Context(), m)).To(Succeed())
	return m
}

func machineConfig(path, source string) string {
	return fmt.Sprintf(`apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-file
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
      - path: %s
        contents:
          source: "%s"
`, path, source)
}
