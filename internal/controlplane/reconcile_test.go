package controlplane

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// world is a control plane namespace on a real API server, without controllers: the test plays those of workloads.
type world struct {
	t       testing.TB
	c       client.WithWatch
	hcp     *hyperv1.HostedControlPlane
	release *release.Release
	// bootstrap is what the hosted API answers.
	bootstrap error
}

func newWorld(t testing.TB, mutate ...func(*hyperv1.HostedControlPlane)) *world {
	t.Helper()
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, c: env.Client(t, scheme), release: testRelease()}
	ns := env.Namespace(t)
	w.hcp = hostedControlPlane(append([]func(*hyperv1.HostedControlPlane){complete}, mutate...)...)
	w.hcp.Namespace, w.hcp.UID, w.hcp.Generation = ns, "", 0
	w.create(w.hcp)
	for _, obj := range mounted() {
		obj.SetNamespace(ns)
		w.create(obj)
	}
	// As it is once there are certificates.
	w.hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
	return w
}

// complete adds what the API demands and components do not look at.
func complete(hcp *hyperv1.HostedControlPlane) {
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
			Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer},
		})
	}
	hcp.Spec.Networking.NetworkType = hyperv1.Other
	hcp.Spec.PullSecret.Name = "pull-secret"
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.c.Create(w.t.Context(), obj); err != nil {
		w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

// pass reconciles every component once, as a fresh process on c.
func (w *world) pass(c client.WithWatch) error {
	executor := component.Executor{Client: c, Apply: apply.New(c, "control-plane-operator"), Clock: clocktesting.NewFakePassiveClock(noon)}
	ctx := component.WorkloadContext{
		Context: w.t.Context(), HCP: w.hcp, Release: w.release,
		Infra:           endpoints.Status{AdvertiseAddress: "10.97.0.1"},
		Management:      component.Management{Nodes: 3, Zones: 3, SetDefaultSecurityContext: true},
		BootstrapHosted: func(context.Context, []byte) error { return w.bootstrap },
	}
	var errs []error
	for _, component := range append(Components(), etcd.Shards(w.hcp)...) {
		errs = append(errs, executor.Reconcile(ctx, component))
	}
	return errors.Join(errs...)
}

// mustPass reconciles until the reports have followed what was created: there is no watch here that would cause the next pass.
func (w *world) mustPass() {
	w.t.Helper()
	for range 2 {
		if err := w.pass(w.c); err != nil {
			w.t.Fatal(err)
		}
	}
}

// rolledOut plays the controller of a workload that has done all that it was asked for.
func (w *world) rolledOut(name string) {
	w.t.Helper()
	key := client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}
	if strings.HasPrefix(name, "etcd") {
		s := &appsv1.StatefulSet{}
		w.get(key, s)
		n := ptr.Deref(s.Spec.Replicas, 1)
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		w.status(s)
		return
	}
	d := &appsv1.Deployment{}
	w.get(key, d)
	n := ptr.Deref(d.Spec.Replicas, 1)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}
	w.status(d)
}

func (w *world) status(obj client.Object) {
	w.t.Helper()
	if err := w.c.Status().Update(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(key client.ObjectKey, obj client.Object) {
	w.t.Helper()
	if err := w.c.Get(w.t.Context(), key, obj); err != nil {
		w.t.Fatalf("reading %T %s: %v", obj, key.Name, err)
	}
}

func (w *world) exists(obj client.Object, name string) bool {
	w.t.Helper()
	err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, obj)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// why is the reason of RolloutComplete of each component, with its version behind it.
func (w *world) why() map[string]string {
	w.t.Helper()
	list := &hyperv1.ControlPlaneComponentList{}
	if err := w.c.List(w.t.Context(), list, client.InNamespace(w.hcp.Namespace)); err != nil {
		w.t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, c := range list.Items {
		reason := "no condition"
		if cond := conditions.Get(c.Status.Conditions, component.RolloutComplete); cond != nil {
			reason = cond.Reason
		}
		reasons[c.Name] = strings.TrimSpace(reason + " " + c.Status.Version)
	}
	return reasons
}

// image is what a Deployment's pods run.
func (w *world) image(name string) string {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, d)
	return d.Spec.Template.Spec.Containers[0].Image
}

// all of the control plane rolls out.
func (w *world) settle() {
	w.t.Helper()
	// etcd twice: it is told when it has been founded, which is another rollout where there are several members.
	for _, name := range []string{"etcd", "kube-apiserver", "etcd", "kube-apiserver"} {
		w.mustPass()
		w.rolledOut(name)
	}
	w.mustPass()
	for _, name := range []string{"kube-controller-manager", "kube-scheduler", "hosted-cluster-config-operator", "ignition-server", "control-plane-pki-operator", "cluster-autoscaler"} {
		w.rolledOut(name)
	}
	w.mustPass()
}

func everywhere(reason string) map[string]string {
	reasons := map[string]string{}
	for _, c := range workloads() {
		reasons[c.Name()] = reason
	}
	return reasons
}

func TestReconcile(t *testing.T) {
	const waits, rolls, done = component.WaitingForDependenciesReason, component.WaitingForRolloutCompleteReason, component.AsExpectedReason

	t.Run("When a control plane is new it should create everything and complete in order", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.bootstrap = errors.New("the binding is not there yet")
		w.mustPass()
		g.Expect(w.why()).To(Equal(map[string]string{
			"etcd": rolls, "kube-apiserver": waits, "kube-controller-manager": waits, "kube-scheduler": waits, "hosted-cluster-config-operator": waits,
			"ignition-server": waits, "control-plane-pki-operator": waits,
			"cluster-autoscaler": waits,
		}))
		clients := []string{"kube-controller-manager", "kube-scheduler", "hosted-cluster-config-operator", "ignition-server"}
		g.Expect(w.exists(&appsv1.Deployment{}, "kube-apiserver")).To(BeTrue(), "it starts together with etcd")
		for _, name := range clients {
			g.Expect(w.exists(&appsv1.Deployment{}, name)).To(BeFalse(), "%s leaves the processors to etcd", name)
		}

		w.rolledOut("etcd")
		w.mustPass()
		for _, name := range clients {
			g.Expect(w.exists(&appsv1.Deployment{}, name)).To(BeTrue(), "%s starts while kube-apiserver does", name)
		}
		g.Expect(w.why()).To(HaveKeyWithValue("etcd", done+" 1.36.3"))
		g.Expect(w.why()).To(HaveKeyWithValue("kube-apiserver", rolls))

		w.rolledOut("kube-apiserver")
		w.mustPass()
		g.Expect(w.why()).To(HaveKeyWithValue("kube-apiserver", component.WaitingForOperandsReason))
		g.Expect(w.why()).To(HaveKeyWithValue("kube-scheduler", waits))

		w.bootstrap = nil
		w.mustPass()
		g.Expect(w.why()).To(HaveKeyWithValue("kube-apiserver", done+" 1.36.3"))
		g.Expect(w.why()).To(HaveKeyWithValue("kube-scheduler", rolls))
		w.settle()
		g.Expect(w.why()).To(Equal(everywhere(done + " 1.36.3")))

		cpc := &hyperv1.ControlPlaneComponent{}
		w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: "kube-scheduler"}, cpc)
		g.Expect(metav1.IsControlledBy(cpc, w.hcp)).To(BeTrue())
		g.Expect(cpc.Status.ObservedGeneration).To(HaveValue(Equal(w.hcp.Generation)))
		g.Expect(cpc.Status.Resources).To(ConsistOf(
			hyperv1.ComponentResource{Kind: "ConfigMap", Name: "kube-scheduler"}, hyperv1.ComponentResource{Kind: "Service", Name: "kube-scheduler"}))
	})

	t.Run("When nothing has changed it should write nothing", func(t *testing.T) {
		w := newWorld(t, highlyAvailable)
		w.settle()
		testenv.ExpectQuiet(t, w.c, w.pass)
	})

	t.Run("When the release changes it should upgrade etcd then kube-apiserver then everything else", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.settle()
		before := w.image("kube-apiserver")
		next := testRelease()
		next.Version, next.Image = "1.37.0", "10.244.0.1:5000/hypershift/release:1.37.0"
		for tag := range next.Images {
			next.Images[tag] = "10.244.0.1:5000/hypershift/" + tag + "@sha256:" + strings.Repeat("d", 64)
		}
		w.release, w.hcp.Spec.ReleaseImage = next, next.Image

		w.mustPass()
		g.Expect(w.why()).To(Equal(map[string]string{
			"etcd": rolls + " 1.36.3", "kube-apiserver": waits + " 1.36.3", "kube-controller-manager": waits + " 1.36.3",
			"kube-scheduler": waits + " 1.36.3", "hosted-cluster-config-operator": waits + " 1.36.3",
			"ignition-server": waits + " 1.36.3", "control-plane-pki-operator": waits + " 1.36.3",
			"cluster-autoscaler": waits + " 1.36.3",
		}))
		g.Expect(w.image("kube-apiserver")).To(Equal(before), "kube-apiserver waits for etcd")

		w.rolledOut("etcd")
		w.mustPass()
		g.Expect(w.image("kube-apiserver")).To(Equal(next.Images["kube-apiserver"]))
		g.Expect(w.image("kube-scheduler")).To(Equal(before), "kube-scheduler must not be newer than kube-apiserver")

		w.rolledOut("kube-apiserver")
		w.mustPass()
		g.Expect(w.image("kube-scheduler")).To(Equal(next.Images["kube-scheduler"]))
		w.settle()
		g.Expect(w.why()).To(Equal(everywhere(done + " 1.37.0")))
	})

	t.Run("When the release lacks an image it should say so and leave what runs alone", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.settle()
		delete(w.release.Images, "kube-scheduler")
		g.Expect(w.pass(w.c)).To(MatchError(ContainSubstring(`no image for "kube-scheduler"`)))
		g.Expect(w.why()).To(HaveKeyWithValue("kube-scheduler", component.ReconciliationErrorReason+" 1.36.3"))
		g.Expect(w.why()).To(HaveKeyWithValue("kube-controller-manager", done+" 1.36.3"))
		g.Expect(w.image("kube-scheduler")).NotTo(Equal("kube-scheduler"))
	})

	t.Run("When a certificate that is not read again changes it should restart who uses it and nobody else", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.settle()
		template := func(name string) string {
			d := &appsv1.Deployment{}
			w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, d)
			return d.Spec.Template.Annotations[component.ConfigHashAnnotation]
		}
		change := func(secret string) {
			s := &corev1.Secret{}
			w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: secret}, s)
			s.Data["data"] = []byte("renewed")
			g.Expect(w.c.Update(t.Context(), s)).To(Succeed())
			w.mustPass()
		}
		kas, kcm := template("kube-apiserver"), template("kube-controller-manager")
		change("kas-server-crt")
		change("kas-aggregator-crt")
		g.Expect(template("kube-apiserver")).To(Equal(kas), "kube-apiserver reads these again by itself")
		change("kube-controller-manager-kubeconfig")
		g.Expect(template("kube-apiserver")).To(Equal(kas))
		g.Expect(template("kube-controller-manager")).NotTo(Equal(kcm))
	})

	t.Run("When somebody else manages etcd it should not touch objects of that name", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{
				Endpoint: "https://etcd.example.com:2379", TLS: hyperv1.EtcdTLSConfig{ClientSecret: corev1.LocalObjectReference{Name: "etcd-tls"}},
			}}
		})
		w.create(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "etcd-client"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "etcd.example.com"},
		})
		w.mustPass()
		g.Expect(w.exists(&appsv1.StatefulSet{}, "etcd")).To(BeFalse())
		g.Expect(w.exists(&hyperv1.ControlPlaneComponent{}, "etcd")).To(BeFalse())
		g.Expect(w.exists(&corev1.Service{}, "etcd-client")).To(BeTrue())
		g.Expect(w.why()).To(HaveKeyWithValue("kube-apiserver", rolls), "it does not wait for an etcd that is not ours")
	})

	t.Run("When a component is wanted no more it should delete what it made", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.settle()
		w.hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged // Only in memory: the API does not allow it.
		w.hcp.Spec.Etcd.Unmanaged = &hyperv1.UnmanagedEtcdSpec{Endpoint: "https://etcd.example.com:2379"}
		w.mustPass()
		g.Expect(w.exists(&appsv1.StatefulSet{}, "etcd")).To(BeFalse())
		g.Expect(w.exists(&corev1.Service{}, "etcd-client")).To(BeFalse())
		g.Expect(w.exists(&corev1.ConfigMap{}, "etcd-config")).To(BeFalse())
		g.Expect(w.exists(&hyperv1.ControlPlaneComponent{}, "etcd")).To(BeFalse())
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error { w.rolledOut("kube-apiserver"); w.mustPass(); return w.pass(c) })
	})

	t.Run("When a person changes requests it should keep them", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.settle()
		d := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: w.hcp.Namespace, Name: "kube-scheduler"}
		w.get(key, d)
		d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *d.Spec.Template.Spec.Containers[0].Resources.Requests.Memory()
		want := d.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()
		g.Expect(w.c.Update(t.Context(), d)).To(Succeed())
		w.mustPass()
		w.get(key, d)
		g.Expect(d.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal(want))
	})
}

func TestReconcileCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		return testenv.CrashCase{
			Client: w.c,
			Run:    func(c client.WithWatch) error { return errors.Join(w.pass(c), w.pass(c)) },
			Check: func(t testing.TB) {
				w.settle()
				NewWithT(t).Expect(w.why()).To(Equal(everywhere(component.AsExpectedReason + " 1.36.3")))
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 6, fresh)
	testenv.Storm(t, 1, fresh)
}
