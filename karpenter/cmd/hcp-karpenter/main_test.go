package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"hcp.internal/karpenter/api"
)

// wait bounds what programs need on a slow machine.
const wait = 6 * time.Minute

const (
	namespace = "clusters-demo"
	cluster   = "demo-abcde"
)

// world is a real API server, which is both clusters, with Kubernetes' scheduler and the controllers of Deployments, and the program under test. Cluster API and kubelets
// are played: see machines.
type world struct {
	*testing.T
	c   client.Client
	dir string
	// program starts the program under test once more, with these variables.
	program func(env ...string) (stop func())
}

// kubernetes is a folder with etcd and Kubernetes' programs, each under its own name: they are built as one.
func kubernetes(t *testing.T) string {
	found, err := filepath.Glob("../../../bin/kubernetes/*/kube")
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no bin/kubernetes: run make kubernetes (%v)", err)
	}
	kube, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "#!/bin/sh\nexec %s %s \"$@\"\n", kube, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newWorld(t *testing.T) *world {
	g, binaries := NewWithT(t), kubernetes(t)
	env := &envtest.Environment{
		BinaryAssetsDirectory: binaries, ControlPlaneStartTimeout: wait, ControlPlaneStopTimeout: time.Minute,
		CRDDirectoryPaths: []string{
			"../../../config/capi/cluster.x-k8s.io_machines.yaml", "../../../config/capi/cluster.x-k8s.io_machinedeployments.yaml",
			"../../../config/crd/default/hypershift.openshift.io_hostedcontrolplanes.yaml",
			"../../../config/crd/default/infrastructure.cluster.x-k8s.io_localmachines.yaml", "../../../config/crd/default/infrastructure.cluster.x-k8s.io_localmachinetemplates.yaml",
		},
		ErrorIfCRDPathMissing: true,
	}
	cfg, err := env.Start()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = env.Stop() })
	scheme := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	scheme.AddKnownTypes(gv, &v1.NodePool{}, &v1.NodePoolList{}, &v1.NodeClaim{}, &v1.NodeClaimList{})
	metav1.AddToGroupVersion(scheme, gv)
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(api.AddToScheme(scheme)).To(Succeed())
	w := &world{T: t, dir: t.TempDir()}
	w.c, err = client.New(cfg, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, cfg)
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := user.KubeConfig()
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(w.dir, "kubeconfig")
	g.Expect(os.WriteFile(path, kubeconfig, 0o600)).To(Succeed())

	program := filepath.Join(w.dir, "hcp-karpenter")
	out, err := exec.Command("go", "build", "-trimpath", "-o", program, ".").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), "%s", out)
	w.start(filepath.Join(binaries, "kube-scheduler"), nil, "--kubeconfig="+path, "--leader-elect=false", "--secure-port=0")
	w.start(filepath.Join(binaries, "kube-controller-manager"), nil, "--kubeconfig="+path, "--leader-elect=false", "--secure-port=0", "--controllers=deployment-controller,replicaset-controller,disruption-controller")
	w.program = func(env ...string) func() {
		return w.start(program, append(env, "KUBECONFIG="+path, "MANAGEMENT_KUBECONFIG="+path, "MANAGEMENT_NAMESPACE="+namespace, "HOSTED_CONTROL_PLANE=demo",
			"DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0"))
	}
	return w
}

// start runs a program until it is stopped or the test ends, and shows the end of what it said if that fails.
func (w *world) start(program string, env []string, args ...string) (stop func()) {
	w.Helper()
	name := filepath.Base(program)
	log, err := os.OpenFile(filepath.Join(w.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = append(os.Environ(), env...), log, log, w.dir
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	w.Cleanup(func() {
		stop()
		if raw, err := os.ReadFile(log.Name()); err == nil && w.Failed() {
			w.Logf("%s said, at its end:\n%s", name, raw[max(0, len(raw)-8000):])
		}
	})
	return stop
}

func object(group, version, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// pool is what the NodePool workers, of no replicas, has in the management cluster.
func (w *world) pool(version string) {
	g := NewWithT(w.T)
	template := object("infrastructure.cluster.x-k8s.io", "v1beta1", "LocalMachineTemplate", "workers-"+version)
	template.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"image": "registry.invalid/node:" + version}}}
	g.Expect(w.c.Create(w.Context(), template)).To(Succeed())
	labels := map[string]any{"cluster.x-k8s.io/cluster-name": cluster, "demo-workers": "demo-workers", "hypershift.openshift.io/owned-by": "hypershift-operator"}
	md := object("cluster.x-k8s.io", "v1beta2", "MachineDeployment", "workers")
	spec := map[string]any{
		"clusterName": cluster, "replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"demo-workers": "demo-workers"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels, "annotations": map[string]any{"hypershift.openshift.io/nodePool": "clusters/workers", "hypershift.openshift.io/release-version": version}},
			"spec": map[string]any{
				"clusterName": cluster, "version": version, "bootstrap": map[string]any{"dataSecretName": "user-data-workers-" + version},
				"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "LocalMachineTemplate", "name": template.GetName()},
			},
		},
	}
	err := w.c.Get(w.Context(), client.ObjectKeyFromObject(md), md)
	md.Object["spec"] = spec
	if apierrors.IsNotFound(err) {
		g.Expect(w.c.Create(w.Context(), md)).To(Succeed())
		return
	}
	g.Expect(w.c.Update(w.Context(), md)).To(Succeed())
}

// controlPlane makes the HostedControlPlane, as the control-plane-operator has it before Karpenter starts.
func (w *world) controlPlane() {
	g := NewWithT(w.T)
	hcp, services := w.hcp(), []any{}
	for _, name := range []string{"APIServer", "OAuthServer", "Konnectivity", "Ignition"} {
		services = append(services, map[string]any{"service": name, "servicePublishingStrategy": map[string]any{"type": "NodePort", "nodePort": map[string]any{"address": "192.0.2.1"}}})
	}
	hcp.Object["spec"] = map[string]any{
		"dns": map[string]any{"baseDomain": "example.test"}, "etcd": map[string]any{"managementType": "Unmanaged", "unmanaged": map[string]any{"endpoint": "https://etcd.test:2379", "tls": map[string]any{"clientSecret": map[string]any{"name": "etcd"}}}},
		"infraID": cluster, "issuerURL": "https://kubernetes.default.svc", "platform": map[string]any{"type": "None"}, "pullSecret": map[string]any{"name": "pull"}, "sshKey": map[string]any{},
		"releaseImage": "registry.test/release:1", "services": services,
	}
	g.Expect(w.c.Create(w.Context(), hcp)).To(Succeed())
	hcp.Object["status"] = map[string]any{"initialized": true, "ready": true}
	g.Expect(w.c.Status().Update(w.Context(), hcp)).To(Succeed())
}

func (w *world) hcp() *unstructured.Unstructured {
	return object("hypershift.openshift.io", "v1beta1", "HostedControlPlane", "demo")
}

// counts is status.autoNode of the HostedControlPlane; nil: there is none.
func (w *world) counts() map[string]any {
	hcp := w.hcp()
	NewWithT(w.T).Expect(w.c.Get(w.Context(), client.ObjectKeyFromObject(hcp), hcp)).To(Succeed())
	counts, _, _ := unstructured.NestedMap(hcp.Object, "status", "autoNode")
	return counts
}

func (w *world) machines(g Gomega) (list []unstructured.Unstructured) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineList"})
	g.Expect(w.c.List(w.Context(), l, client.InNamespace(namespace))).To(Succeed())
	return l.Items
}

func (w *world) nodes(g Gomega) []corev1.Node {
	l := &corev1.NodeList{}
	g.Expect(w.c.List(w.Context(), l)).To(Succeed())
	return l.Items
}

// play does what Cluster API, kubelets and the cloud controllers would: a node for each Machine, the end of Pods that are deleted, and of nodes whose Machine is gone.
func (w *world) play(ctx context.Context) {
	for ctx.Err() == nil {
		_ = w.once(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func (w *world) once(ctx context.Context) error {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineList"})
	if err := w.c.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range l.Items {
		if err := w.boot(ctx, l.Items[i].GetName()); err != nil {
			return err
		}
	}
	pods := &corev1.PodList{}
	if err := w.c.List(ctx, pods, client.InNamespace("default")); err != nil {
		return err
	}
	for i := range pods.Items {
		switch p := &pods.Items[i]; {
		case p.DeletionTimestamp != nil:
			_ = w.c.Delete(ctx, p, client.GracePeriodSeconds(0))
		case p.Spec.NodeName != "" && p.Status.Phase != corev1.PodRunning:
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
			_ = w.c.Status().Update(ctx, p)
		}
	}
	return nil
}

func (w *world) boot(ctx context.Context, name string) error {
	node := &corev1.Node{}
	err := w.c.Get(ctx, client.ObjectKey{Name: name}, node)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil {
		if len(node.Status.Conditions) == 0 {
			return w.ready(ctx, node)
		}
		kept := node.Spec.Taints[:0]
		for _, t := range node.Spec.Taints {
			if t.Key != corev1.TaintNodeNotReady { // an admission plugin puts it on
				kept = append(kept, t)
			}
		}
		if len(kept) == len(node.Spec.Taints) {
			return nil
		}
		node.Spec.Taints = kept
		return w.c.Update(ctx, node)
	}
	node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}}, Spec: corev1.NodeSpec{
		ProviderID: "local://" + namespace + "/" + name, Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint}}}
	if err := w.c.Create(ctx, node); err != nil {
		return err
	}
	return w.ready(ctx, node)
}

// ready has a node report what its machine has. Karpenter may change the node at the same time: then the next look does it.
func (w *world) ready(ctx context.Context, node *corev1.Node) error {
	infra := object("infrastructure.cluster.x-k8s.io", "v1beta1", "LocalMachine", node.Name)
	if err := w.c.Get(ctx, client.ObjectKeyFromObject(infra), infra); err != nil {
		return err
	}
	cpu, _, _ := unstructured.NestedString(infra.Object, "spec", "cpu")
	memory, _, _ := unstructured.NestedString(infra.Object, "spec", "memory")
	offers := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("20Gi")}
	node.Status = corev1.NodeStatus{Capacity: offers, Allocatable: offers, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}}}
	return w.c.Status().Update(ctx, node)
}

func (w *world) scale(replicas int32) {
	g := NewWithT(w.T)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	labels := map[string]string{"app": "web"}
	d.Spec = appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "web", Image: "registry.invalid/web:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("800m")}}}}},
	}}
	if err := w.c.Create(w.Context(), d.DeepCopy()); err != nil {
		g.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)
		g.Expect(w.c.Patch(w.Context(), d, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)))).To(Succeed())
	}
}

// settled is how many machines run what is wanted.
func (w *world) settled(g Gomega, machines, pods int) []unstructured.Unstructured {
	list := w.machines(g)
	g.Expect(list).To(HaveLen(machines), "Machines")
	g.Expect(w.nodes(g)).To(HaveLen(machines), "Nodes")
	claims := &v1.NodeClaimList{}
	g.Expect(w.c.List(w.Context(), claims)).To(Succeed())
	g.Expect(claims.Items).To(HaveLen(machines), "NodeClaims")
	for i := range claims.Items {
		g.Expect(claims.Items[i].StatusConditions().Get(v1.ConditionTypeInitialized).IsTrue()).To(BeTrue(), "NodeClaim %s", claims.Items[i].Name)
	}
	l, running := &corev1.PodList{}, 0
	g.Expect(w.c.List(w.Context(), l, client.InNamespace("default"))).To(Succeed())
	for i := range l.Items {
		if l.Items[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	g.Expect(running).To(Equal(pods), "Pods that run")
	return list
}

// TestAutoNode is Karpenter's core with our machines, on a real API server: machines come for Pods, are replaced when their NodePool changes, are as many as the limit lets be, and go
// with the Pods.
func TestAutoNode(t *testing.T) {
	w := newWorld(t)
	g := NewWithT(t)
	g.Expect(w.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	w.controlPlane()
	stopped := w.program()
	class := &api.HyperShiftNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: api.HyperShiftNodeClassSpec{NodePool: "workers", InstanceTypes: []api.InstanceType{
		{Name: "small", CPU: resource.MustParse("1"), Memory: resource.MustParse("2Gi")}, {Name: "large", CPU: resource.MustParse("4"), Memory: resource.MustParse("8Gi")}}}}
	g.Eventually(func() error { return w.c.Create(t.Context(), class.DeepCopyObject().(client.Object)) }).WithTimeout(wait).Should(Succeed())
	ready := func() string {
		g.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(class), class)).To(Succeed())
		for _, c := range class.GetConditions() {
			if c.Type == "Ready" {
				return string(c.Status) + " " + c.Reason + ": " + c.Message
			}
		}
		return ""
	}
	g.Eventually(ready).WithTimeout(wait).Should(ContainSubstring("NodePoolUnfit: spec.nodePool: there is no NodePool workers"))
	w.pool("1.36.3")
	g.Eventually(ready).WithTimeout(wait).Should(HavePrefix("True"))

	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "burst"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: api.GroupVersion.Group, Kind: api.Kind, Name: "workers"}
	pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"small"}}}
	pool.Spec.Template.Spec.ExpireAfter = v1.MustParseNillableDuration("Never")
	pool.Spec.Limits = v1.Limits{corev1.ResourceCPU: resource.MustParse("2")}
	pool.Spec.Disruption.ConsolidationPolicy, pool.Spec.Disruption.ConsolidateAfter = v1.ConsolidationPolicyWhenEmptyOrUnderutilized, v1.MustParseNillableDuration("1s")
	pool.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	g.Expect(w.c.Create(t.Context(), pool)).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.play(ctx) }()
	t.Cleanup(func() { stop(); <-done })

	// From nothing to a machine.
	w.scale(1)
	var first []unstructured.Unstructured
	g.Eventually(func(g Gomega) { first = w.settled(g, 1, 1) }).WithTimeout(wait).Should(Succeed())
	g.Expect(first[0].GetLabels()).To(HaveKeyWithValue("cluster.x-k8s.io/cluster-name", cluster))
	g.Expect(first[0].GetLabels()).NotTo(HaveKey("demo-workers"), "a MachineSet would take it")
	g.Expect(first[0].GetAnnotations()).NotTo(HaveKey("hypershift.openshift.io/nodePool"))
	node := w.nodes(g)[0]
	g.Expect(node.Labels).To(And(HaveKeyWithValue("karpenter.sh/nodepool", "burst"), HaveKeyWithValue(corev1.LabelInstanceTypeStable, "small")))

	// Three Pods want three machines; the limit is two.
	w.scale(3)
	g.Eventually(func(g Gomega) { w.settled(g, 2, 2) }).WithTimeout(wait).Should(Succeed())
	w.scale(1)
	g.Eventually(func(g Gomega) { w.settled(g, 1, 1) }).WithTimeout(wait).Should(Succeed())

	// The NodePool gets another version: the machine is replaced.
	w.pool("1.36.4")
	g.Eventually(func(g Gomega) {
		list := w.settled(g, 1, 1)
		version, _, _ := unstructured.NestedString(list[0].Object, "spec", "version")
		g.Expect(version).To(Equal("1.36.4"))
	}).WithTimeout(wait).Should(Succeed())

	// Without Pods there are no machines.
	g.Eventually(w.counts).WithTimeout(wait).Should(Equal(map[string]any{"nodeCount": int64(1), "nodeClaimCount": int64(1), "vcpus": int64(1)}))
	w.scale(0)
	g.Eventually(func(g Gomega) { w.settled(g, 0, 0) }).WithTimeout(wait).Should(Succeed())
	g.Eventually(w.counts).WithTimeout(wait).Should(Equal(map[string]any{"nodeCount": int64(0), "nodeClaimCount": int64(0), "vcpus": int64(0)}))

	// Nobody asks for it any more, while Pods run: machines go one by one, as budgets let their Pods go, and nothing is left but what the user made.
	w.scale(2)
	g.Eventually(func(g Gomega) { w.settled(g, 2, 2) }).WithTimeout(wait).Should(Succeed())
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	budget.Spec.Selector, budget.Spec.MinAvailable = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, ptr.To(intstr.FromInt32(2))
	g.Expect(w.c.Create(t.Context(), budget)).To(Succeed())
	stopped()
	// Its claim went before its Machine was made.
	lost := object("infrastructure.cluster.x-k8s.io", "v1beta1", "LocalMachine", "burst-lost")
	lost.SetLabels(map[string]string{"karpenter.hypershift.openshift.io/nodeclaim": "burst-lost"})
	lost.Object["spec"] = map[string]any{"image": "registry.invalid/node:1.36.4"}
	g.Expect(w.c.Create(t.Context(), lost)).To(Succeed())
	w.program("RETIRE=true")
	leaving := func(g Gomega) {
		claims := &v1.NodeClaimList{}
		g.Expect(w.c.List(t.Context(), claims)).To(Succeed())
		g.Expect(claims.Items).To(HaveLen(2))
		for _, c := range claims.Items {
			g.Expect(c.DeletionTimestamp).NotTo(BeNil(), c.Name)
		}
		g.Expect(w.machines(g)).To(HaveLen(2), "what a budget holds is not taken")
		g.Expect(w.counts()).To(HaveKeyWithValue("nodeClaimCount", int64(2)))
	}
	g.Eventually(w.counts).WithTimeout(wait).Should(HaveKeyWithValue("nodeClaimCount", int64(3)), "what is lost counts until it is gone")
	g.Eventually(leaving).WithTimeout(wait).Should(Succeed())
	g.Consistently(leaving).WithTimeout(5 * time.Second).Should(Succeed())
	g.Expect(w.c.Delete(t.Context(), budget)).To(Succeed())
	g.Eventually(func(g Gomega) {
		w.settled(g, 0, 0)
		g.Expect(w.counts()).To(BeNil())
	}).WithTimeout(wait).Should(Succeed())
	g.Consistently(func(g Gomega) { w.settled(g, 0, 0) }).WithTimeout(5 * time.Second).Should(Succeed()) // though Pods wait
	g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKeyFromObject(lost), lost))).To(BeTrue(), "nothing of a machine is left")
	g.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)).To(Succeed())
	g.Expect(pool.DeletionTimestamp).To(BeNil())
	raw, err := os.ReadFile(filepath.Join(w.dir, "hcp-karpenter.log"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Contains(string(raw), "panic")).To(BeFalse())
}
