package autoscaler

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// node is a Ready node of 4 processors and 16 GiB.
func node(name string, mutate ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, m := range mutate {
		m(n)
	}
	return n
}

func sized(cpu, memory string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Allocatable[corev1.ResourceCPU], n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse(cpu), resource.MustParse(memory)
	}
}

func tainted(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

// pod is one of a ReplicaSet, asks for so many processors, and has 1 GiB for each.
func pod(name string, cpu string, mutate ...func(*corev1.Pod)) *corev1.Pod {
	q := resource.MustParse(cpu)
	memory := resource.NewQuantity(q.MilliValue()<<20, resource.BinarySI)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: q, corev1.ResourceMemory: *memory}}}}},
	}
	for _, m := range mutate {
		m(p)
	}
	return p
}

func on(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func priority(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

func annotated(k, v string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, k, v) }
}

func selecting(k, v string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{k: v} }
}

func alone(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}}}
}

func spreadOut(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
}

func daemonSet(cpu string) appsv1.DaemonSet {
	return appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: pod("agent", cpu).Spec}}}
}

// group has the nodes as its machines, two hours old, and makes more like the template.
func group(name string, least, most int, template *corev1.Node, nodes ...string) Group {
	g := Group{Name: name, Min: least, Max: most, Replicas: len(nodes)}
	for _, n := range nodes {
		g.Machines = append(g.Machines, Machine{Name: n, Node: n, Created: noon.Add(-2 * time.Hour)})
	}
	if template != nil {
		g.Template = likeNode(template)
	}
	return g
}

// growth and removals in words.
func summary(p Plan) (lines []string) {
	for _, g := range p.Grow {
		lines = append(lines, fmt.Sprintf("%s %d→%d", g.Group.Name, g.From, g.To))
	}
	for _, r := range p.Remove {
		lines = append(lines, "-"+r.Machine)
	}
	for _, m := range p.Unmark {
		lines = append(lines, "unmark "+m)
	}
	return lines
}
