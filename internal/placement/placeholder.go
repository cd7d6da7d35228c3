package placement

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

const (
	// Namespace is where claims of pairs of nodes are, and placeholders. The operator makes it when it first needs it, and `hypershift uninstall` removes it.
	Namespace = "hypershift-request-serving-node-placeholders"
	// PlaceholderLabel is on pods that hold nodes; those of one Deployment have the same value.
	PlaceholderLabel = "hypershift.openshift.io/placeholder"
	// maxPlaceholders bounds how many pairs of one size are kept warm: more are a mistake.
	maxPlaceholders = 100
)

// Placeholder is pods that wait for nodes, or hold them, until a hosted cluster takes these: whatever adds nodes when pods wait goes by them.
type Placeholder struct {
	// Name of the Deployment.
	Name string
	// Size is that of the nodes.
	Size string
	// Pair that they are to be of; empty: of one that nobody has.
	Pair string
	// Count is how many nodes.
	Count int
	// Zones and Hosts are where they are of no use: there is a node already.
	Zones, Hosts []string
	// OneZone: all nodes are in one zone, so that only different nodes can be asked for.
	OneZone bool
}

// Warm are the placeholders that are always there: as many pairs of each size as its management.placeholders asks for, beside those that are claimed.
func Warm(sizes []schedulingv1alpha1.SizeConfiguration, nodes []Node) (list []Placeholder) {
	for _, s := range sizes {
		if s.Management == nil {
			continue
		}
		for i := range min(s.Management.Placeholders, maxPlaceholders) {
			list = append(list, Placeholder{Name: ObjectName(fmt.Sprintf("placeholder-%s-%d", s.Name, i)), Size: s.Name, Count: 2, OneZone: OneZone(nodes)})
		}
	}
	return list
}

// Awaited is what stands for nodes that a cluster lacks; nil when it has all.
func Awaited(c Cluster, p Plan) *Placeholder {
	if p.Placed || p.Missing <= 0 {
		return nil
	}
	return &Placeholder{Name: c.Namespace, Size: c.Size, Pair: p.Own, Count: p.Missing, Zones: p.Zones, Hosts: p.Hosts, OneZone: p.OneZone}
}

// Deployment makes its pods: in nodes of one pair that no hosted cluster has, in different zones where there are several, and never beside another placeholder. claimed are the pairs that
// hosted clusters have. image is one of ours.
func (p Placeholder) Deployment(namespace, image string, claimed map[string]string) *appsv1.Deployment {
	labels := map[string]string{PlaceholderLabel: p.Name, hyperv1.HostedClusterSizeLabel: p.Size}
	own := &metav1.LabelSelector{MatchLabels: map[string]string{PlaceholderLabel: p.Name}}
	others := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: PlaceholderLabel, Operator: metav1.LabelSelectorOpExists}, {Key: PlaceholderLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{p.Name}},
	}}
	everybody := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: PlaceholderLabel, Operator: metav1.LabelSelectorOpExists}}}
	apart := []corev1.PodAffinityTerm{{LabelSelector: everybody, TopologyKey: corev1.LabelHostname}, {LabelSelector: others, TopologyKey: hyperv1.PairedNodesLabel}}
	if !p.OneZone {
		apart = slices.Insert(apart, 0, corev1.PodAffinityTerm{LabelSelector: own, TopologyKey: corev1.LabelTopologyZone})
	}
	affinity := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart}}
	selector := map[string]string{hyperv1.RequestServingComponentLabel: "true", hyperv1.ClusterSizeLabel: p.Size}
	var elsewhere []corev1.NodeSelectorRequirement
	not := func(key string, values []string) {
		if len(values) > 0 {
			elsewhere = append(elsewhere, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: values})
		}
	}
	if p.Pair != "" {
		selector[hyperv1.PairedNodesLabel] = p.Pair
	} else {
		affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: own, TopologyKey: hyperv1.PairedNodesLabel}}}
		not(hyperv1.PairedNodesLabel, slices.Sorted(maps.Keys(claimed)))
	}
	not(corev1.LabelTopologyZone, p.Zones)
	not(corev1.LabelHostname, p.Hosts)
	if len(elsewhere) > 0 {
		affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: elsewhere}}}}
	}
	tolerate := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule}
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(p.Count)), RevisionHistoryLimit: ptr.To[int32](1), Selector: own,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: selector, Affinity: affinity,
				Tolerations:                   []corev1.Toleration{tolerate(hyperv1.RequestServingComponentLabel), tolerate(hyperv1.ControlPlaneNodeLabel)},
				AutomountServiceAccountToken:  ptr.To(false),
				TerminationGracePeriodSeconds: ptr.To[int64](0),
				SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1001), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{
					Name: "placeholder", Image: image, Command: []string{"/usr/bin/hcp-sidecar", "pause"}, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				}},
			}},
		},
	}
}
