package component

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Resource names and topology keys of nodes.
const (
	swiftNIC     = corev1.ResourceName("aro.openshift.io/swift-nic")
	zoneKey      = corev1.LabelTopologyZone
	hostnameKey  = corev1.LabelHostname
	controlPlane = 50  // weight of nodes kept for control planes
	own          = 100 // weight of nodes kept for this control plane, and of its other pods
)

// nodeSelector is the control plane's, unless the component was given one of its own.
func nodeSelector(s *scope) error {
	if len(s.ctx.HCP.Spec.NodeSelector) > 0 && len(s.template.Spec.NodeSelector) == 0 {
		s.template.Spec.NodeSelector = maps.Clone(s.ctx.HCP.Spec.NodeSelector)
	}
	return nil
}

// isolated says whether the pods have nodes that nothing else runs on.
func (s *scope) isolated() bool { return s.c.options.RequestServing && s.ctx.dedicatedRequestServing() }

// tolerations are ours, the control plane's, and those that the component was given.
func tolerations(s *scope) error {
	tolerate := func(key, value string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	list := []corev1.Toleration{tolerate(controlPlaneNodeLabel, "true"), tolerate(clusterNodeLabel, s.ctx.HCP.Namespace)}
	if s.isolated() {
		list = append(list, tolerate(RequestServingLabel, "true"))
	}
	s.template.Spec.Tolerations = slices.Concat(list, s.ctx.HCP.Spec.Tolerations, s.template.Spec.Tolerations)
	return nil
}

func nodeAffinity(s *scope) error {
	prefer := func(weight int32, key, value string) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{labelIn(key, value)},
		}}
	}
	affinity := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
		prefer(controlPlane, controlPlaneNodeLabel, "true"),
		prefer(own, clusterNodeLabel, s.ctx.HCP.Namespace),
	}}
	if s.isolated() {
		required := []corev1.NodeSelectorRequirement{labelIn(RequestServingLabel, "true"), labelIn(clusterNodeLabel, s.ctx.HCP.Namespace)}
		for _, pair := range commaList(s.ctx.HCP.Annotations[additionalSelectorAnnotation]) {
			key, value, ok := strings.Cut(pair, "=")
			if !ok {
				return fmt.Errorf("annotation %s: %q is not key=value", additionalSelectorAnnotation, pair)
			}
			required = append(required, labelIn(key, value))
		}
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: required}},
		}
	}
	s.affinity().NodeAffinity = affinity
	return nil
}

func labelIn(key, value string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}

func (s *scope) affinity() *corev1.Affinity {
	if s.template.Spec.Affinity == nil {
		s.template.Spec.Affinity = &corev1.Affinity{}
	}
	return s.template.Spec.Affinity
}

// colocation draws the pods of a control plane to the same nodes, so that the loss of a node hurts few control planes.
func colocation(s *scope) error {
	setLabel(&s.template.ObjectMeta, HostedControlPlaneLabel, s.ctx.HCP.Namespace)
	s.affinity().PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight: own,
		PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{HostedControlPlaneLabel: s.ctx.HCP.Namespace}},
			TopologyKey:   hostnameKey,
		},
	}}}
	return nil
}

// maxAnnotationName is how long the name of an annotation may be, without its prefix.
const maxAnnotationName = 63

// resourceOverrides merges what annotations of the HostedControlPlane say into the requests of containers.
func resourceOverrides(s *scope) error {
	for _, key := range slices.Sorted(maps.Keys(s.ctx.HCP.Annotations)) {
		target, ok := strings.CutPrefix(key, resourceOverridePrefix)
		name, container, dotted := strings.Cut(target, ".")
		if !ok || name != s.c.name || !dotted && len(name+"."+name) <= maxAnnotationName {
			continue
		}
		if !dotted {
			container = name // the whole name would be longer than an annotation's may be
		}
		c := Container(&s.template.Spec, container)
		if c == nil {
			continue
		}
		for _, pair := range commaList(s.ctx.HCP.Annotations[key]) {
			name, value, _ := strings.Cut(pair, "=")
			quantity, err := resource.ParseQuantity(value)
			if err != nil {
				return fmt.Errorf("annotation %s: %q is not a list of resource=quantity: %w", key, pair, err)
			}
			setQuantity(&c.Resources.Requests, corev1.ResourceName(name), quantity)
			if corev1.ResourceName(name) == swiftNIC {
				setQuantity(&c.Resources.Limits, swiftNIC, quantity) // Extended resources must have limit = request.
			}
		}
	}
	return nil
}

func setQuantity(list *corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = quantity
}

// antiAffinity keeps replicas apart: never two on a node, never two in a zone. Where the management cluster has fewer nodes
// or zones than there are replicas, the rule is a preference, or the pods could never be scheduled.
func antiAffinity(s *scope) error {
	r := replicasOf(s.workload)
	if !s.c.options.MultiZoneSpread || r == nil || ptr.Deref(*r, 1) <= 1 {
		return nil
	}
	n := int(**r)
	relaxZone, relaxNode := s.relaxed(n)
	if z, n, ok := liveSpread(s); ok {
		relaxZone, relaxNode = z, n
	}
	m := s.ctx.Management
	if !s.isolated() && (!relaxZone && filled(m.Zones, n) || !relaxNode && filled(m.Nodes, n)) {
		endFirst(s)
	}
	rule := &corev1.PodAntiAffinity{}
	spread := func(key string, relaxed bool) {
		term := corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: maps.Clone(s.template.Labels)},
			TopologyKey:   key,
		}
		if relaxed {
			rule.PreferredDuringSchedulingIgnoredDuringExecution = append(rule.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: own, PodAffinityTerm: term})
			return
		}
		rule.RequiredDuringSchedulingIgnoredDuringExecution = append(rule.RequiredDuringSchedulingIgnoredDuringExecution, term)
	}
	spread(zoneKey, relaxZone)
	spread(hostnameKey, relaxNode)
	s.affinity().PodAntiAffinity = rule
	return nil
}

// relaxed says which rules are preferences for n replicas, as the management cluster is now.
func (s *scope) relaxed(n int) (zone, node bool) {
	m := s.ctx.Management
	if s.isolated() {
		// Its nodes are in zones of their own, if there are that many: who claims them sees to it. A rule over zones would only hold up the pod that
		// replaces one on a node that fails: the new node is in the zone of the old one, where the old pod is until somebody removes that node.
		return m.Nodes > 0, false
	}
	zone = fewer(m.Zones, n) || slices.Contains([]hyperv1.PlatformType{"OpenStack", hyperv1.KubevirtPlatform}, s.ctx.HCP.Spec.Platform.Type)
	return zone, fewer(m.Nodes, n)
}

// fewer says whether a known count is below n.
func fewer(count, n int) bool { return count > 0 && count < n }

// filled says whether n replicas leave none of a known count free.
func filled(count, n int) bool { return count > 0 && count <= n }

// endFirst has an update end an old pod before it makes a new one. A pod more than there are places for those that must be apart would wait forever, and
// the update with it. This is no part of the template, so no pod starts anew for it.
func endFirst(s *scope) {
	if d, ok := s.workload.(*appsv1.Deployment); ok && d.Spec.Strategy.RollingUpdate != nil {
		d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(1))
	}
}

// liveSpread is what the live workload has, as long as it is of the same release: a node that comes or goes must not restart
// a control plane. With the next release the spread is decided anew, and so it is when the pods get nodes of their own, or lose them.
func liveSpread(s *scope) (relaxZone, relaxNode, ok bool) {
	if s.live == nil {
		return false, false, false
	}
	live := podTemplate(s.live)
	if live.Annotations[ReleaseImageAnnotation] != s.template.Annotations[ReleaseImageAnnotation] ||
		live.Spec.Affinity == nil || live.Spec.Affinity.PodAntiAffinity == nil {
		return false, false, false
	}
	if own := live.Spec.Affinity.NodeAffinity; (own != nil && own.RequiredDuringSchedulingIgnoredDuringExecution != nil) != s.isolated() {
		return false, false, false
	}
	for _, term := range live.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		relaxZone = relaxZone || term.PodAffinityTerm.TopologyKey == zoneKey
		relaxNode = relaxNode || term.PodAffinityTerm.TopologyKey == hostnameKey
	}
	return relaxZone, relaxNode, true
}
