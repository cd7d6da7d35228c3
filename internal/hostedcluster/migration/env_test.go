package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

const patience2 = 3 * time.Minute // on a machine that builds other things, too

// fleet is a management cluster with hosted clusters of standard types, in one namespace, whose control planes have no programs.
type fleet struct {
	client client.WithWatch
	cfg    *rest.Config
	ns     string // of the HostedClusters, and of the operator
	*deployer
}

// deployer stands for the operator that renders programs. It has none to deploy, and does what a test says for single hosted clusters.
type deployer struct {
	mu      sync.Mutex
	refuses map[string]error // by name of the HostedCluster
	mute    map[string]error
	deploys int   // how often it was asked to
	broken  error // why nothing can be deployed at all
}

// Deploy implements Deployer.
func (d *deployer) Deploy(_ context.Context, hc *hyperv1.HostedCluster, private, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deploys++
	if d.broken != nil {
		return d.broken
	}
	if private {
		return d.refuses[hc.Name]
	}
	return nil
}

// Speaks implements Deployer.
func (d *deployer) Speaks(_ context.Context, hc *hyperv1.HostedCluster) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mute[hc.Name]
}

func (d *deployer) refuse(name string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuses[name] = err
}

func newFleet(t testing.TB, env *testenv.Env) *fleet {
	t.Helper()
	g := NewWithT(t)
	env.InstallPrivateCAPI(t)
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), hyperv1.AddToScheme(scheme))).To(Succeed())
	f := &fleet{client: env.Client(t, scheme), cfg: env.Config, ns: env.Namespace(t), deployer: &deployer{refuses: map[string]error{}, mute: map[string]error{}}}
	g.Expect(f.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: StateName}})).To(Succeed())
	labels := map[string]string{"app": LegacyDeployment}
	legacy := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: LegacyDeployment}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "i"}}}},
	}}
	g.Expect(f.client.Create(t.Context(), legacy)).To(Succeed())
	legacy.Status.Replicas, legacy.Status.ReadyReplicas, legacy.Status.AvailableReplicas = 1, 1, 1
	g.Expect(f.client.Status().Update(t.Context(), legacy)).To(Succeed())
	t.Cleanup(func() { // others count them
		_ = f.client.DeleteAllOf(context.Background(), &hyperv1.HostedCluster{}, client.InNamespace(f.ns))
	})
	return f
}

func object(group, version, kind, ns, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": kind, "metadata": map[string]any{"namespace": ns, "name": name}, "spec": spec}}
}

func machineSpec(name string) map[string]any {
	return map[string]any{"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "user-data"},
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure." + translate.Standard, "kind": "LocalMachine", "name": name}}
}

// add makes a hosted cluster of standard types with so many machines, each of which has a pod; below 0 it has no object of Cluster API at all.
func (f *fleet) add(t testing.TB, name string, machines int) *hyperv1.HostedCluster {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	hc := testenv.HostedCluster(f.ns, name)
	hc.Annotations = map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope}
	g.Expect(f.client.Create(ctx, hc)).To(Succeed())
	ns := f.ns + "-" + name
	g.Expect(f.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
	if machines < 0 {
		return hc
	}
	g.Expect(f.client.Create(ctx, &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name}, Spec: hyperv1.NodePoolSpec{
		ClusterName: name, Replicas: ptr.To(int32(machines)), Release: hyperv1.Release{Image: "registry.example/release:1"},
		Platform: hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform}, Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
	}})).To(Succeed())
	cluster := object(translate.Standard, "v1beta2", "Cluster", ns, "c", map[string]any{"infrastructureRef": map[string]any{
		"apiGroup": "infrastructure." + translate.Standard, "kind": "LocalCluster", "name": "c"}})
	cluster.SetFinalizers([]string{"cluster.cluster.x-k8s.io"})
	g.Expect(f.client.Create(ctx, cluster)).To(Succeed())
	for i := range machines {
		machine := object(translate.Standard, "v1beta2", "Machine", ns, fmt.Sprint("m-", i), machineSpec(fmt.Sprint("m-", i)))
		machine.SetFinalizers([]string{"machine.cluster.x-k8s.io"})
		machine.SetOwnerReferences(ownedBy(cluster))
		g.Expect(f.client.Create(ctx, machine)).To(Succeed())
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: machine.GetName(), OwnerReferences: ownedBy(machine)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "machine", Image: "i"}}}}
		g.Expect(f.client.Create(ctx, pod)).To(Succeed())
	}
	return hc
}

// program makes a Deployment of a control plane, of whose replicas some are available.
func (f *fleet) program(t testing.TB, ns, name string, replicas, available int32) *appsv1.Deployment {
	t.Helper()
	g, labels := NewWithT(t), map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}
	g.Expect(f.client.Create(t.Context(), d)).To(Succeed())
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: available, AvailableReplicas: available}
	g.Expect(f.client.Status().Update(t.Context(), d)).To(Succeed())
	return d
}

// middle makes a hosted cluster in the middle of a move whose phase began now, and whose lock everybody has acknowledged.
func (f *fleet) middle(t testing.TB, name string, j Journal, now time.Time, annotations map[string]*string) ctrl.Request {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	f.add(t, name, 1)
	j.SchemaVersion, j.Lock, j.Direction, j.Started, j.PhaseStarted = journalSchema, "lock-1", Forward, now, now
	_, err := writeJournal(ctx, f.client, f.ns+"-"+name, j, nil)
	g.Expect(err).NotTo(HaveOccurred())
	lock := map[string]*string{hyperv1.PrivateCAPIMigrationInProgressAnnotation: ptr.To("true"), hyperv1.PrivateCAPIMigrationLockAnnotation: &j.Lock, hyperv1.PrivateCAPIMigrationAckAnnotation: &j.Lock}
	maps.Copy(lock, annotations)
	f.ask(t, name, lock)
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name}}
	g.Expect(f.client.Patch(ctx, pool, patch.Annotation(hyperv1.PrivateCAPIMigrationAckAnnotation, &j.Lock))).To(Succeed())
	return f.request(name)
}

func (f *fleet) request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: f.ns, Name: name}}
}

func ownedBy(o *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), Controller: ptr.To(true)}}
}

// controller is one that nothing runs yet, working through c.
func (f *fleet) controller(t testing.TB, c client.Client, now clock.PassiveClock) *Controller {
	t.Helper()
	disco, err := discovery.NewDiscoveryClientForConfig(f.cfg)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &Controller{Direct: c, Cached: f.client, Discovery: disco, Deployer: f.deployer, Clock: now, Namespace: f.ns}
}

// run runs a controller as the operator does until the test ends, and somebody who acknowledges locks.
func (f *fleet) run(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	mgr, err := ctrl.NewManager(f.cfg, ctrl.Options{
		Scheme: f.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: process.Queue(),
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{f.ns: {}}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	c := f.controller(t, f.client, clock.RealClock{})
	c.Cached = mgr.GetClient()
	g.Expect(c.SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = mgr.Start(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

// moves is what a watch saw of a fleet's moves.
type moves struct {
	mu      sync.Mutex
	started []string
	moving  map[string]bool
	most    int
}

// follow watches the fleet from outside, and acknowledges each lock as the operator for standard types does.
func (f *fleet) follow(t testing.TB) *moves {
	t.Helper()
	m := &moves{moving: map[string]bool{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		wait.UntilWithContext(t.Context(), func(ctx context.Context) {
			if err := f.watch(ctx, m); err != nil && ctx.Err() == nil {
				t.Logf("following the fleet, which is tried again: %v", err)
			}
		}, 50*time.Millisecond)
	})
	t.Cleanup(ended.Wait) // the context has ended by then
	return m
}

// watch follows the fleet until the API server ends the watch, as it may at any time. No move begins and ends between two watches: each
// waits for its acknowledgement, which comes from here.
func (f *fleet) watch(ctx context.Context, m *moves) error {
	list := &hyperv1.HostedClusterList{}
	if err := f.client.List(ctx, list, client.InNamespace(f.ns)); err != nil {
		return err
	}
	// Moves that have ended come first, or those that took their place would count beside them.
	slices.SortStableFunc(list.Items, func(a, b hyperv1.HostedCluster) int {
		return cmp.Compare(a.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation], b.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation])
	})
	for i := range list.Items {
		if err := f.acknowledge(ctx, m, &list.Items[i]); err != nil {
			return err
		}
	}
	events, err := f.client.Watch(ctx, &hyperv1.HostedClusterList{}, client.InNamespace(f.ns), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return err
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		hc, ok := e.Object.(*hyperv1.HostedCluster)
		if !ok {
			return apierrors.FromObject(e.Object)
		}
		if err := f.acknowledge(ctx, m, hc); err != nil {
			return err
		}
	}
	return nil
}

// acknowledge notes what was seen of a hosted cluster, and acknowledges its lock.
func (f *fleet) acknowledge(ctx context.Context, m *moves, hc *hyperv1.HostedCluster) error {
	m.see(hc)
	lock := hc.Annotations[hyperv1.PrivateCAPIMigrationLockAnnotation]
	if lock == "" || hc.Annotations[hyperv1.PrivateCAPIMigrationAckAnnotation] == lock {
		return nil
	}
	ack := patch.Annotation(hyperv1.PrivateCAPIMigrationAckAnnotation, &lock)
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: hc.Name}}
	if err := errors.Join(client.IgnoreNotFound(f.client.Patch(ctx, pool, ack)), f.client.Patch(ctx, hc, ack)); err != nil {
		return fmt.Errorf("acknowledging the lock of %s: %w", hc.Name, err)
	}
	return nil
}

func (m *moves) see(hc *hyperv1.HostedCluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if locked(hc) && !m.moving[hc.Name] {
		m.started = append(m.started, hc.Name)
	}
	if m.moving[hc.Name] = locked(hc); !m.moving[hc.Name] {
		delete(m.moving, hc.Name)
	}
	m.most = max(m.most, len(m.moving))
}

func (m *moves) begun() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.started)
}

// annotate changes annotations of the ConfigMap that says which hosted clusters are moved.
func (f *fleet) annotate(t testing.TB, settings map[string]*string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: StateName}}
	NewWithT(t).Expect(f.client.Patch(t.Context(), cm, patch.Metadata{Annotations: settings}.Patch())).To(Succeed())
}

func (f *fleet) ask(t testing.TB, name string, annotations map[string]*string) {
	t.Helper()
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name}}
	NewWithT(t).Expect(f.client.Patch(t.Context(), hc, patch.Metadata{Annotations: annotations}.Patch())).To(Succeed())
}

// states are annotations and the condition of each hosted cluster: Private, Standard or Locked, the reason, and the message.
func (f *fleet) states(t testing.TB) map[string][3]string {
	t.Helper()
	list := &hyperv1.HostedClusterList{}
	NewWithT(t).Expect(f.client.List(t.Context(), list, client.InNamespace(f.ns))).To(Succeed())
	out := map[string][3]string{}
	for i := range list.Items {
		hc := &list.Items[i]
		state := [3]string{"Standard", "", ""}
		if hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true" {
			state[0] = "Private"
		}
		if locked(hc) {
			state[0] = "Locked"
		}
		if c := conditions.Get(hc.Status.Conditions, hyperv1.PrivateCAPIMigrationProgressing); c != nil {
			state[1], state[2] = c.Reason, c.Message
		}
		out[hc.Name] = state
	}
	return out
}

// stored are the resource versions of everything that a move of a hosted cluster could change, by name.
func (f *fleet) stored(t testing.TB, name string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	disco, err := discovery.NewDiscoveryClientForConfig(f.cfg)
	g.Expect(err).NotTo(HaveOccurred())
	served, err := kinds(disco)
	g.Expect(err).NotTo(HaveOccurred())
	out := map[string]string{}
	for _, k := range served {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		g.Expect(f.client.List(t.Context(), list, client.InNamespace(f.ns+"-"+name))).To(Succeed())
		for _, item := range list.Items {
			out[k.String()+"/"+item.Name] = item.ResourceVersion
		}
	}
	hc := &hyperv1.HostedCluster{}
	g.Expect(f.client.Get(t.Context(), client.ObjectKey{Namespace: f.ns, Name: name}, hc)).To(Succeed())
	for _, key := range slices.Sorted(maps.Keys(hc.Annotations)) {
		out["annotation "+key] = hc.Annotations[key]
	}
	return out
}
