package hostedcontrolplane

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

// world is a control plane namespace on a real API server, with everything that is not the API server played by the test.
type world struct {
	t   testing.TB
	env *testenv.Env
	c   client.WithWatch
	hcp *hyperv1.HostedControlPlane

	clock    *clocktesting.FakePassiveClock
	versions map[string]string           // release image → version
	payloads map[string]*release.Release // and those that are OpenShift payloads
	lookup   error
	answer   *health
	address  string // of the load balancer; empty: none is assigned
	routes   bool
}

// keys are shared by all tests, because generating RSA takes long.
var keys = func() pki.KeySource {
	shared := sync.OnceValues(func() (crypto.Signer, error) { return pki.NewKey(pki.RSA) })
	return func(kind pki.KeyKind) (crypto.Signer, error) {
		if kind == pki.RSA {
			return shared()
		}
		return pki.NewKey(kind)
	}
}()

func newWorld(t testing.TB, mutate ...func(*hyperv1.HostedControlPlane)) *world {
	t.Helper()
	return newWorldOn(t, testenv.Start(t), mutate...)
}

// newWorldOn is a world on some API server.
func newWorldOn(t testing.TB, env *testenv.Env, mutate ...func(*hyperv1.HostedControlPlane)) *world {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, env: env, c: env.Client(t, scheme), clock: clocktesting.NewFakePassiveClock(time.Now()), address: "10.97.0.1", answer: &health{host: "10.97.0.1"},
		versions: map[string]string{"10.244.0.1:5000/hypershift/release:1.36.3": "1.36.3", "10.244.0.1:5000/hypershift/release:1.35.1": "1.35.1"}}
	w.hcp = demoHCP(mutate...)
	w.hcp.Namespace, w.hcp.UID, w.hcp.Generation = env.Namespace(t), "", 0
	g := NewWithT(t)
	g.Expect(w.c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "pull-secret"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
	})).To(Succeed())
	g.Expect(w.c.Create(t.Context(), w.hcp)).To(Succeed())
	return w
}

// Lookup implements release.Provider.
func (w *world) Lookup(_ context.Context, image string, _ []byte) (*release.Release, error) {
	if w.lookup != nil {
		return nil, w.lookup
	}
	if p := w.payloads[image]; p != nil {
		return p, nil
	}
	version, ok := w.versions[image]
	if !ok {
		return nil, &release.LookupError{Image: image, Kind: release.ErrNotFound}
	}
	r := &release.Release{Image: image, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(version))), Version: version, KubernetesVersion: version, Kubernetes: true, Images: map[string]string{}}
	for _, tag := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		r.Images[tag] = "10.244.0.1:5000/hypershift/kubernetes:" + version
	}
	r.Images["controlplane-operator"] = "10.244.0.1:5000/hypershift/hypershift:" + version
	return r, nil
}

// Result implements Checker.
func (w *world) Result(context.Context, target) *health { return w.answer }

// Accessible implements component.Capabilities.
func (w *world) Accessible(_ context.Context, kind schema.GroupVersionKind) (bool, error) {
	return w.routes && kind == endpoints.RouteKind, nil
}

// Routes implements Management.
func (w *world) Routes(context.Context) (bool, error) { return w.routes, nil }

// Facts implements Management.
func (w *world) Facts(context.Context) component.Management {
	return component.Management{Nodes: 1, Zones: 1, SetDefaultSecurityContext: true, NativeSidecars: true}
}

// reconciler is a process that has just started: it remembers nothing.
func (w *world) reconciler(c client.Client) *Reconciler {
	return &Reconciler{
		Client: c, Live: c, Clock: w.clock, Components: controlplane.ComponentsOf, MissingImages: controlplane.MissingImages,
		Releases: w, Images: Images{Own: map[string]string{operatorTag: "own:1"}},
		PKI:     &pki.Reconciler{Client: c, Owner: names.ControlPlaneOperator, Clock: w.clock, Keys: keys, Rand: rand.Reader},
		Checker: w, Background: w.t.Context(), Management: w,
		Context: component.WorkloadContext{BootstrapHosted: func(context.Context, []byte) error { return nil }},
	}
}

// pass is one pass of a fresh process.
func (w *world) pass(c client.Client) (ctrl.Result, error) {
	return w.reconciler(c).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
}

// maxPasses until it must have settled: one per rank of the components and some for the others' moves.
const maxPasses = 20

// settle plays the other controllers between passes until neither side changes anything.
func (w *world) settle(c client.WithWatch) error {
	for range maxPasses {
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		if _, err := w.pass(counting); err != nil {
			return err
		}
		if !w.play() && counting.Writes() == 0 {
			return nil
		}
	}
	return fmt.Errorf("still changing after %d passes", maxPasses)
}

// play makes one move of the cloud, the kubelet and the workload controllers, and says whether anything changed.
func (w *world) play() bool {
	ctx, ns, changed := w.t.Context(), client.InNamespace(w.hcp.Namespace), false
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	var services corev1.ServiceList
	must(w.c.List(ctx, &services, ns))
	for i := range services.Items {
		svc := &services.Items[i]
		if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && w.address != "" && len(svc.Status.LoadBalancer.Ingress) == 0 {
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: w.address}}
			must(w.c.Status().Update(ctx, svc))
			changed = true
		}
	}
	var deployments appsv1.DeploymentList
	must(w.c.List(ctx, &deployments, ns))
	for i := range deployments.Items {
		d := &deployments.Items[i]
		n := ptr.Deref(d.Spec.Replicas, 1)
		if d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == n {
			continue
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}
		must(w.c.Status().Update(ctx, d))
		changed = true
	}
	var sets appsv1.StatefulSetList
	must(w.c.List(ctx, &sets, ns))
	for i := range sets.Items {
		s := &sets.Items[i]
		n := ptr.Deref(s.Spec.Replicas, 1)
		if s.Status.ObservedGeneration == s.Generation && s.Status.AvailableReplicas == n {
			continue
		}
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: n, UpdatedReplicas: n, CurrentReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		must(w.c.Status().Update(ctx, s))
		changed = true
	}
	var jobs batchv1.JobList
	must(w.c.List(ctx, &jobs, ns))
	for i := range jobs.Items {
		j := &jobs.Items[i]
		if j.Status.CompletionTime != nil {
			continue
		}
		now := metav1.Now()
		j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now}}}
		must(w.c.Status().Update(ctx, j))
		changed = true
	}
	return changed
}

func (w *world) read() *hyperv1.HostedControlPlane {
	w.t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(w.hcp), hcp); err != nil {
		w.t.Fatal(err)
	}
	return hcp
}

// update changes the HostedControlPlane as the hypershift-operator would.
func (w *world) update(change func(*hyperv1.HostedControlPlane)) {
	w.t.Helper()
	hcp := w.read()
	change(hcp)
	if err := w.c.Update(w.t.Context(), hcp); err != nil {
		w.t.Fatal(err)
	}
}

var errBroken = errors.New("the registry does not answer")
