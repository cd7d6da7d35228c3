package provider

import (
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a namespace with a provisioned cluster and a Machine that has user data and a LocalMachine.
type world struct {
	t      testing.TB
	client client.WithWatch
	ns     string
	key    client.ObjectKey
}

func newWorld(t testing.TB) *world {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme, err := NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	w := &world{t: t, client: env.Client(t, scheme), ns: env.Namespace(t)}
	w.key = client.ObjectKey{Namespace: w.ns, Name: "workers-abc"}
	cluster := &clusterv1.Cluster{ObjectMeta: w.meta("demo-x"), Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "demo"},
	}}
	g.Expect(w.client.Create(t.Context(), cluster)).To(Succeed())
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	g.Expect(w.client.Status().Update(t.Context(), cluster)).To(Succeed())
	g.Expect(w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: w.meta("user-data"), Data: map[string][]byte{"value": []byte("{}")}})).To(Succeed())
	machine := &clusterv1.Machine{ObjectMeta: w.meta(w.key.Name), Spec: clusterv1.MachineSpec{
		ClusterName: "demo-x", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachine", Name: w.key.Name},
	}}
	g.Expect(w.client.Create(t.Context(), machine)).To(Succeed())
	local := &infrav1.LocalMachine{ObjectMeta: w.meta(w.key.Name), Spec: infrav1.LocalMachineSpec{Image: "registry.example.com/node:1"}}
	local.Labels = map[string]string{clusterLabel: "demo-x"}
	local.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: machine.Name, UID: machine.UID, Controller: ptr.To(true)}}
	g.Expect(w.client.Create(t.Context(), local)).To(Succeed())
	return w
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.ns, Name: name}
}

// settle calls the reconciler until it has nothing more to do.
func (w *world) settle(c client.WithWatch) error {
	r := &MachineReconciler{Client: c, Live: testenv.Uncached(c), Clock: testingclock.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(100)}
	for range 4 {
		if _, err := r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: w.key}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) local() *infrav1.LocalMachine {
	w.t.Helper()
	m := &infrav1.LocalMachine{}
	NewWithT(w.t).Expect(w.client.Get(w.t.Context(), w.key, m)).To(Succeed())
	return m
}

func (w *world) pod() *corev1.Pod {
	p := &corev1.Pod{}
	if err := w.client.Get(w.t.Context(), w.key, p); err != nil {
		NewWithT(w.t).Expect(apierrors.IsNotFound(err)).To(BeTrue(), fmt.Sprint(err))
		return nil
	}
	return p
}

// kubelet plays the kubelet: it writes a status.
func (w *world) kubelet(edit func(*corev1.Pod)) {
	w.t.Helper()
	p := w.pod()
	edit(p)
	NewWithT(w.t).Expect(w.client.Status().Update(w.t.Context(), p)).To(Succeed())
}

func (w *world) reason() string {
	w.t.Helper()
	c := conditions.Get(w.local().Status.Conditions, infrav1.MachineReady)
	if c == nil {
		return ""
	}
	return c.Reason
}

func TestMachineLife(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	step := func(what, want string) {
		t.Helper()
		g.Expect(w.settle(w.client)).To(Succeed())
		g.Expect(w.reason()).To(Equal(want), what)
	}
	step("When all is there it should make a pod", infrav1.ReasonPodPending)
	first := w.pod()
	g.Expect(first).NotTo(BeNil())
	g.Expect(w.local().Spec.ProviderID).To(Equal("local://" + w.ns + "/workers-abc"))

	w.kubelet(running)
	step("When the pod runs it should be ready", infrav1.ReasonReady)
	m := w.local()
	g.Expect(*m.Status.Initialization.Provisioned).To(BeTrue())
	g.Expect(m.Status.Addresses).To(ConsistOf(
		infrav1.MachineAddress{Type: "Hostname", Address: "workers-abc"}, infrav1.MachineAddress{Type: "InternalDNS", Address: "workers-abc"},
		infrav1.MachineAddress{Type: "InternalIP", Address: "10.244.0.7"},
	))
	testenv.ExpectQuiet(t, w.client, w.settle)

	w.kubelet(crashed)
	step("When it crashes it should be rebooting", infrav1.ReasonRebooting)
	g.Expect(w.local().Status.Reboots).To(BeEquivalentTo(2))
	w.kubelet(running)
	step("When it has booted again it should be ready", infrav1.ReasonReady)

	g.Expect(w.client.Delete(t.Context(), w.pod(), client.GracePeriodSeconds(0))).To(Succeed())
	step("When its pod was deleted it should be gone, for good", infrav1.ReasonMachineGone)
	g.Expect(w.pod()).To(BeNil())
	testenv.ExpectQuiet(t, w.client, w.settle)

	g.Expect(w.client.Delete(t.Context(), w.local())).To(Succeed())
	g.Expect(w.settle(w.client)).To(Succeed())
	g.Expect(apierrors.IsNotFound(w.client.Get(t.Context(), w.key, &infrav1.LocalMachine{}))).To(BeTrue(), "When it is deleted it should go")
}

// Cluster API makes a LocalMachine first and its Machine second. A manager that dies in between leaves the first.
func TestOrphan(t *testing.T) {
	orphan := func(t *testing.T) *world {
		w := newWorld(t)
		m := w.local()
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "workers", UID: "set"}}
		NewWithT(t).Expect(w.client.Update(t.Context(), m)).To(Succeed())
		return w
	}
	after := func(w *world, age time.Duration) (ctrl.Result, error) {
		clock := testingclock.NewFakePassiveClock(w.local().CreationTimestamp.Add(age))
		r := &MachineReconciler{Client: w.client, Live: w.client, Clock: clock, Events: events.NewFakeRecorder(100)}
		return r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: w.key})
	}
	remove := func(t *testing.T, w *world) {
		m := &clusterv1.Machine{ObjectMeta: w.meta(w.key.Name)}
		NewWithT(t).Expect(w.client.Delete(t.Context(), m)).To(Succeed())
	}
	t.Run("When a LocalMachine of a MachineSet never gets a Machine it should go", func(t *testing.T) {
		g := NewWithT(t)
		w := orphan(t)
		remove(t, w)
		result, err := after(w, time.Minute)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(time.Minute))
		g.Expect(w.local().DeletionTimestamp).To(BeNil())
		_, err = after(w, orphanAfter)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.local().DeletionTimestamp).NotTo(BeNil())
		g.Expect(w.settle(w.client)).To(Succeed())
		g.Expect(apierrors.IsNotFound(w.client.Get(t.Context(), w.key, &infrav1.LocalMachine{}))).To(BeTrue())
	})
	t.Run("When a Machine names it it should stay", func(t *testing.T) {
		g := NewWithT(t)
		w := orphan(t)
		_, err := after(w, time.Hour)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.local().DeletionTimestamp).To(BeNil())
	})
	t.Run("When no MachineSet has made it it should stay", func(t *testing.T) {
		g := NewWithT(t)
		w := orphan(t)
		remove(t, w)
		m := w.local()
		m.OwnerReferences = nil
		g.Expect(w.client.Update(t.Context(), m)).To(Succeed())
		_, err := after(w, time.Hour)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.local().DeletionTimestamp).To(BeNil())
	})
}

func TestMachineRefused(t *testing.T) {
	t.Run("When the API server refuses the pod it should say why", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		m := w.local()
		m.Spec.Image = " "
		g.Expect(w.client.Update(t.Context(), m)).To(Succeed())
		g.Expect(w.settle(w.client)).NotTo(Succeed())
		c := conditions.Get(w.local().Status.Conditions, infrav1.MachineReady)
		g.Expect(c.Reason).To(Equal(infrav1.ReasonInvalidSpec))
		g.Expect(c.Message).To(ContainSubstring("image"))
	})
}

func TestMachineCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		return testenv.CrashCase{
			Client: w.client,
			Run: func(c client.WithWatch) error {
				if err := w.settle(c); err != nil {
					return err
				}
				if p := w.pod(); p != nil {
					w.kubelet(running)
				}
				return w.settle(c)
			},
			Check: func(t testing.TB) {
				g := NewWithT(t)
				pods := &corev1.PodList{}
				g.Expect(w.client.List(t.Context(), pods, client.InNamespace(w.ns))).To(Succeed())
				g.Expect(pods.Items).To(HaveLen(1), "neither lost nor made twice")
				m := w.local()
				g.Expect(m.Finalizers).To(ContainElement(infrav1.MachineFinalizer))
				g.Expect(m.Status.PodUID).To(BeEquivalentTo(pods.Items[0].UID))
				g.Expect(w.reason()).To(Equal(infrav1.ReasonReady))
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}

func TestMachineDeletionCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		g := NewWithT(t)
		g.Expect(w.settle(w.client)).To(Succeed())
		g.Expect(w.client.Delete(t.Context(), w.local())).To(Succeed())
		return testenv.CrashCase{
			Client: w.client,
			Run:    func(c client.WithWatch) error { return w.settle(c) },
			Check: func(t testing.TB) {
				g := NewWithT(t)
				g.Expect(apierrors.IsNotFound(w.client.Get(t.Context(), w.key, &infrav1.LocalMachine{}))).To(BeTrue())
				g.Expect(w.pod()).To(BeNil(), "no pod outlives its machine")
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}

func TestClusterAndTemplate(t *testing.T) {
	t.Run("When a cluster has an endpoint it should be provisioned, before that wait", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		lc := &infrav1.LocalCluster{ObjectMeta: w.meta("demo")}
		g.Expect(w.client.Create(t.Context(), lc)).To(Succeed())
		run := func(c client.WithWatch) error {
			_, err := (&ClusterReconciler{Client: c, Clock: testingclock.NewFakePassiveClock(noon)}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(lc)})
			return err
		}
		g.Expect(run(w.client)).To(Succeed())
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(lc), lc)).To(Succeed())
		g.Expect(lc.Status.Conditions[0].Reason).To(Equal(infrav1.ReasonWaitingForEndpoint))
		lc.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "10.97.0.1", Port: 6443}
		g.Expect(w.client.Update(t.Context(), lc)).To(Succeed())
		g.Expect(run(w.client)).To(Succeed())
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(lc), lc)).To(Succeed())
		g.Expect(*lc.Status.Initialization.Provisioned).To(BeTrue())
		testenv.ExpectQuiet(t, w.client, run)
	})
	t.Run("When a template is made it should offer what its machines will", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		tmpl := &infrav1.LocalMachineTemplate{ObjectMeta: w.meta("tmpl")}
		tmpl.Spec.Template.Spec = infrav1.LocalMachineSpec{Image: "x", Memory: ptr.To(resource.MustParse("2Gi"))}
		g.Expect(w.client.Create(t.Context(), tmpl)).To(Succeed())
		run := func(c client.WithWatch) error {
			host := Host{CPU: resource.MustParse("2"), Memory: *resource.NewQuantity(24<<30, resource.BinarySI), Architecture: "amd64"}
			_, err := (&TemplateReconciler{Client: c, Host: host}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tmpl)})
			return err
		}
		g.Expect(run(w.client)).To(Succeed())
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(tmpl), tmpl)).To(Succeed())
		g.Expect(tmpl.Status.Capacity.Memory().String()).To(Equal("2Gi"))
		g.Expect(tmpl.Status.NodeInfo.Architecture).To(Equal("amd64"))
		testenv.ExpectQuiet(t, w.client, run)
	})
}
