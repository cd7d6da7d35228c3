package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/placement"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/internal/testenv/bare"
)

// bound is how long a real scheduler may take for all pods of a control plane, with its own start: it tries those again that didn't fit after up to 10 s.
const bound = 2 * time.Minute

// taintNotReady is on nodes that aren't ready.
const taintNotReady = "node.kubernetes.io/not-ready"

// place is a node of the management cluster: which zone it is in, and the pair that it is of, or none for what isn't request serving.
type place struct{ name, zone, pair string }

// room is a management cluster whose pods are bound by a real kube-scheduler, and one hosted cluster with nodes of its own there.
type room struct {
	*scene
	hc   *hyperv1.HostedCluster
	made int
}

func newRoom(t *testing.T, places []place) *room {
	r := &room{scene: newScene(t)}
	r.ns = "clusters" // the control plane's namespace is that of the fixtures
	r.configure()
	for _, ns := range []string{r.ns, bare.Namespace} {
		err := r.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		NewWithT(t).Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
	}
	for _, p := range places {
		r.node(p)
	}
	r.hc = r.dedicated("demo", 3)
	t.Cleanup(func() {
		_ = r.c.DeleteAllOf(context.Background(), &corev1.Pod{}, client.InNamespace(bare.Namespace), client.GracePeriodSeconds(0))
	})
	testenv.Start(t).StartScheduler(t)
	return r
}

func (r *room) node(p place) {
	g := NewWithT(r.T)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: map[string]string{corev1.LabelHostname: p.name, corev1.LabelTopologyZone: p.zone}}}
	key := hyperv1.ControlPlaneNodeLabel
	if p.pair != "" {
		key = hyperv1.RequestServingComponentLabel
		n.Labels[hyperv1.PairedNodesLabel], n.Labels[hyperv1.ClusterSizeLabel] = p.pair, "small"
	}
	n.Labels[key] = "true"
	n.Spec.Taints = []corev1.Taint{{Key: key, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	g.Expect(r.c.Create(r.Context(), n)).To(Succeed())
	r.Cleanup(func() { _ = r.c.Delete(context.Background(), n) })
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Capacity = n.Status.Allocatable
	g.Expect(r.c.Status().Update(r.Context(), n)).To(Succeed())
	// The API server gives a new node a taint, which kube-controller-manager takes away once it is ready.
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintNotReady })
	g.Expect(r.c.Update(r.Context(), n)).To(Succeed())
}

// claim has the operator give the hosted cluster its nodes.
func (r *room) claim() {
	r.pass(r.c, r.sizer(r.c), client.ObjectKeyFromObject(r.hc))
	r.pass(r.c, r.sizer(r.c), client.ObjectKeyFromObject(r.hc))
	r.pass(r.c, r.placer(r.c), client.ObjectKeyFromObject(r.hc))
	r.size(r.hc)
}

// workload is what is rendered of a component.
type workload struct {
	name     string
	replicas int32
	template corev1.PodTemplateSpec
	// surge: an update makes a pod before it ends one.
	surge bool
}

// rendered are the workloads of the control plane, as on this management cluster.
func (r *room) rendered() (list []workload) {
	g := NewWithT(r.T)
	facts, err := (&management.Cluster{Reader: r.c, Mapper: r.c.RESTMapper(), NativeSidecars: true, Clock: clock.RealClock{}}).Describe(r.Context())
	g.Expect(err).NotTo(HaveOccurred())
	hcp := bare.HostedControlPlane(func(hcp *hyperv1.HostedControlPlane) {
		maps.Copy(hcp.Annotations, r.hc.Annotations)
		hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
		hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
	})
	ctx := bare.Context(r.T, hcp, bare.Credentials(r.T)...)
	facts.SetDefaultSecurityContext, facts.DefaultSecurityContextUID = true, 10042
	ctx.Management = facts
	for _, c := range controlplane.Components() {
		out, err := c.(*component.WorkloadComponent).Render(ctx)
		g.Expect(err).NotTo(HaveOccurred(), c.Name())
		switch o := out.Workload.(type) {
		case *appsv1.Deployment:
			rolling := o.Spec.Strategy.RollingUpdate
			surge := *o.Spec.Replicas > 1 && rolling != nil && rolling.MaxSurge.IntValue() > 0 && rolling.MaxUnavailable.IntValue() == 0
			list = append(list, workload{o.Name, *o.Spec.Replicas, o.Spec.Template, surge})
		case *appsv1.StatefulSet:
			template := o.Spec.Template
			for _, claim := range o.Spec.VolumeClaimTemplates { // nobody provides volumes here
				template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			}
			list = append(list, workload{o.Name, *o.Spec.Replicas, template, false})
		}
	}
	return list
}

// pod makes one of a workload, as its controller does. Nobody knows the classes of priorities here.
func (r *room) pod(w workload) *corev1.Pod {
	r.made++
	p := &corev1.Pod{ObjectMeta: *w.template.ObjectMeta.DeepCopy(), Spec: *w.template.Spec.DeepCopy()}
	p.Namespace, p.Name = bare.Namespace, fmt.Sprintf("%s-%d", w.name, r.made)
	p.Spec.PriorityClassName = ""
	NewWithT(r.T).Expect(r.c.Create(r.Context(), p)).To(Succeed(), w.name)
	return p
}

func (r *room) pods() []corev1.Pod {
	list := &corev1.PodList{}
	NewWithT(r.T).Expect(r.c.List(r.Context(), list, client.InNamespace(bare.Namespace))).To(Succeed())
	return list.Items
}

// settle waits until every pod has a node.
func (r *room) settle(when string) {
	r.Helper()
	NewWithT(r.T).Eventually(func() error {
		var errs []error
		for _, p := range r.pods() {
			if p.Spec.NodeName != "" {
				continue
			}
			message := "the scheduler has said nothing yet"
			for _, c := range p.Status.Conditions {
				message = cmp.Or(c.Message, message)
			}
			errs = append(errs, fmt.Errorf("%s: %s", p.Name, message))
		}
		return errors.Join(errs...)
	}).WithTimeout(bound).WithPolling(100*time.Millisecond).Should(Succeed(), when)
}

// update replaces all pods of a workload, in the order in which its controller does.
func (r *room) update(w workload) {
	for _, old := range r.pods() {
		if old.Labels[component.ControlPlaneComponentLabel] != w.name {
			continue
		}
		if w.surge {
			r.pod(w)
			r.settle("while " + w.name + " is updated, a new pod first")
		}
		NewWithT(r.T).Expect(r.c.Delete(r.Context(), &old, client.GracePeriodSeconds(0))).To(Succeed())
		if !w.surge {
			r.pod(w)
			r.settle("while " + w.name + " is updated, the old pod first")
		}
	}
}

func isolated(p *corev1.Pod) bool { return p.Labels[hyperv1.RequestServingComponentLabel] == "true" }

// holds checks where the pods of the workloads are.
func (r *room) holds(when string) {
	r.Helper()
	g := NewWithT(r.T)
	nodes := &corev1.NodeList{}
	g.Expect(r.c.List(r.Context(), nodes)).To(Succeed())
	of, shared := map[string]corev1.Node{}, 0
	for _, n := range nodes.Items {
		of[n.Name] = n
		if n.Labels[hyperv1.ControlPlaneNodeLabel] == "true" {
			shared++
		}
	}
	spread := map[string][]string{}
	for _, p := range r.pods() {
		n := of[p.Spec.NodeName]
		g.Expect(n.Labels[hyperv1.RequestServingComponentLabel] == "true").To(Equal(isolated(&p)), "%s: %s is on %s", when, p.Name, n.Name)
		if isolated(&p) {
			g.Expect(n.Labels[placement.ClusterLabel]).To(Equal(names.NamespaceOf(r.hc)), "%s: %s", when, p.Name)
		}
		if p.DeletionTimestamp == nil {
			app := p.Labels[component.ControlPlaneComponentLabel]
			spread[app] = append(spread[app], n.Name)
		}
	}
	for app, on := range spread {
		if len(on) <= shared {
			g.Expect(slices.Compact(slices.Sorted(slices.Values(on)))).To(HaveLen(len(on)), "%s: two of %s are on one node", when, app)
		}
	}
	r.Logf("%s: %v", when, spread)
}

// TestSpread has the pods of a highly available control plane, with nodes of its own for requests, bound by a real kube-scheduler.
func TestSpread(t *testing.T) {
	three := []place{{"c1", "z1", ""}, {"c2", "z2", ""}, {"c3", "z3", ""}, {"c4", "z1", ""}, {"c5", "z2", ""}, {"c6", "z3", ""}}
	two := []place{{"c1", "z1", ""}, {"c2", "z2", ""}, {"c3", "z1", ""}, {"c4", "z2", ""}}
	for name, places := range map[string][]place{
		"When control planes have three zones and requests two of them every pod should find a place":        append(slices.Clone(three), place{"r1", "z1", "p1"}, place{"r2", "z2", "p1"}),
		"When control planes have two zones and requests the same every pod should find a place":             append(slices.Clone(two), place{"r1", "z1", "p1"}, place{"r2", "z2", "p1"}),
		"When nodes for requests are in a zone that control planes lack every pod should find a place":       append(slices.Clone(two), place{"r1", "z1", "p1"}, place{"r2", "z3", "p1"}),
		"When control planes have three zones and requests one every pod should find a place":                append(slices.Clone(three), place{"r1", "z1", "p1"}, place{"r2", "z1", "p1"}),
		"When control planes have two nodes and nodes for requests are many more every pod should find room": append(slices.Clone(two[:2]), place{"r1", "z1", "p1"}, place{"r2", "z2", "p1"}, place{"r3", "z3", "p2"}, place{"r4", "z1", "p2"}),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t, places)
			r.claim()
			g := NewWithT(t)
			g.Expect(r.owned(r.hc)).To(ConsistOf("r1", "r2"))
			workloads := r.rendered()
			for _, w := range workloads {
				for range w.replicas {
					r.pod(w)
				}
			}
			r.settle("at first")
			r.holds("at first")
			for _, w := range workloads {
				r.update(w)
			}
			r.holds("after updates")
		})
	}
}

// TestSpreadWhenNodesGo takes nodes away from a control plane, and looks where a real kube-scheduler puts the pods that were there.
func TestSpreadWhenNodesGo(t *testing.T) {
	places := []place{{"c1", "z1", ""}, {"c2", "z2", ""}, {"c3", "z3", ""}, {"c4", "z1", ""}, {"c5", "z2", ""}, {"c6", "z3", ""}, {"r1", "z1", "p1"}, {"r2", "z2", "p1"}, {"r3", "z1", "p1"}}
	r := newRoom(t, places)
	r.claim()
	g := NewWithT(t)
	g.Expect(r.owned(r.hc)).To(ConsistOf("r1", "r2"))
	workloads := map[string]workload{}
	for _, w := range r.rendered() {
		workloads[w.name] = w
		for range w.replicas {
			r.pod(w)
		}
	}
	r.settle("at first")
	r.holds("at first")
	// again makes a pod for each that was on a node, as controllers do as soon as it is being deleted.
	again := func(node string, grace ...client.DeleteOption) (n int) {
		for _, p := range r.pods() {
			if p.Spec.NodeName == node && p.DeletionTimestamp == nil {
				g.Expect(r.c.Delete(t.Context(), &p, grace...)).To(Succeed())
				r.pod(workloads[p.Labels[component.ControlPlaneComponentLabel]])
				n++
			}
		}
		return n
	}

	t.Run("When a node of control planes is gone its pods should find another", func(t *testing.T) {
		gone := ""
		for _, p := range r.pods() {
			if p.Labels[component.ControlPlaneComponentLabel] == "etcd" {
				gone = p.Spec.NodeName
			}
		}
		NewWithT(t).Expect(r.c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: gone}})).To(Succeed())
		n := again(gone, client.GracePeriodSeconds(0))
		r.settle("without " + gone)
		r.holds(fmt.Sprintf("without %s, which had %d pods", gone, n))
	})
	t.Run("When a node for requests fails its pods should find another, though nobody ends those that were on it", func(t *testing.T) {
		g := NewWithT(t)
		n := &corev1.Node{}
		g.Expect(r.c.Get(t.Context(), client.ObjectKey{Name: "r1"}, n)).To(Succeed())
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoSchedule})
		g.Expect(r.c.Update(t.Context(), n)).To(Succeed())
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		g.Expect(r.c.Status().Update(t.Context(), n)).To(Succeed())
		r.claim()
		g.Expect(r.owned(r.hc)).To(ConsistOf("r1", "r2", "r3"), "the old one has pods still")
		g.Expect(again("r1")).To(Equal(1))
		r.settle("while r1 doesn't answer")
		r.holds("while r1 doesn't answer")
		var on []string
		for _, p := range r.pods() {
			if isolated(&p) && p.DeletionTimestamp == nil {
				on = append(on, p.Spec.NodeName)
			}
		}
		g.Expect(on).To(ConsistOf("r2", "r3"))
	})
	t.Run("When the failed node is gone the cluster should have two again", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(r.c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "r1"}})).To(Succeed())
		r.claim()
		g.Expect(r.owned(r.hc)).To(ConsistOf("r2", "r3"))
	})
}
