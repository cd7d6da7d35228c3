package simulate

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Amounts are quantities of resources: CPU in thousandths, everything else in its own unit.
type Amounts map[corev1.ResourceName]int64

// most bounds an amount, so that sums of what a tenant writes don't overflow.
const most = math.MaxInt64 >> 16

// AmountsOf reads a list, with amounts between 0 and a bound that no machine has.
func AmountsOf(list corev1.ResourceList) Amounts {
	out := make(Amounts, len(list))
	for name, q := range list {
		n := q.Value()
		if name == corev1.ResourceCPU && n < most/1000 {
			n = q.MilliValue()
		}
		out[name] = min(max(n, 0), most)
	}
	return out
}

// Pod is a pod with what decides about its place worked out.
type Pod struct {
	Object   *corev1.Pod
	Requests Amounts

	affinity      nodeaffinity.RequiredNodeAffinity
	near, apart   []*term
	spread        []spread
	ports         []hostPort
	unsatisfiable string // why it fits nowhere, whatever the node
}

// Key is namespace/name.
func (p *Pod) Key() string { return p.Object.Namespace + "/" + p.Object.Name }

// term is which pods count in which kind of place.
type term struct {
	key        string // the same for terms that mean the same
	topology   string // label of nodes
	selector   labels.Selector
	namespaces []string // sorted; nil: all
}

func (t *term) matches(p *corev1.Pod) bool {
	if t.namespaces != nil && !slices.Contains(t.namespaces, p.Namespace) {
		return false
	}
	return t.selector.Matches(labels.Set(p.Labels))
}

type spread struct {
	*term
	maxSkew int
}

type hostPort struct {
	ip, protocol string
	port         int32
}

func (a hostPort) conflicts(b hostPort) bool {
	wildcard := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	return a.port == b.port && a.protocol == b.protocol && (a.ip == b.ip || wildcard(a.ip) || wildcard(b.ip))
}

// Analyse works a pod out. What in it can't be understood makes it fit nowhere.
func Analyse(pod *corev1.Pod) *Pod {
	p := &Pod{Object: pod, Requests: AmountsOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})), affinity: nodeaffinity.GetRequiredNodeAffinity(pod)}
	p.Requests[corev1.ResourcePods] = 1
	if a := pod.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			p.near = p.terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			p.apart = p.terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		if t := p.term(c.TopologyKey, c.LabelSelector, c.MatchLabelKeys, nil, []string{pod.Namespace}); t != nil {
			p.spread = append(p.spread, spread{t, int(max(c.MaxSkew, 1))})
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range list {
			for _, port := range c.Ports {
				if port.HostPort > 0 {
					p.ports = append(p.ports, hostPort{port.HostIP, string(port.Protocol), port.HostPort})
				}
			}
		}
	}
	return p
}

func (p *Pod) terms(list []corev1.PodAffinityTerm) []*term {
	var out []*term
	for _, t := range list {
		namespaces := slices.Clone(t.Namespaces)
		switch {
		case t.NamespaceSelector != nil: // labels of namespaces aren't known here; all of them is the stricter reading
			namespaces = nil
		case len(namespaces) == 0:
			namespaces = []string{p.Object.Namespace}
		}
		if made := p.term(t.TopologyKey, t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys, namespaces); made != nil {
			out = append(out, made)
		}
	}
	return out
}

func (p *Pod) term(topology string, s *metav1.LabelSelector, match, mismatch, namespaces []string) *term {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		p.unsatisfiable = "a label selector of the pod is not valid"
		return nil
	}
	for _, keys := range []struct {
		list     []string
		operator metav1.LabelSelectorOperator
	}{{match, metav1.LabelSelectorOpIn}, {mismatch, metav1.LabelSelectorOpNotIn}} {
		for _, k := range keys.list {
			value, ok := p.Object.Labels[k]
			if !ok {
				continue
			}
			more, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: k, Operator: keys.operator, Values: []string{value}}}})
			if err != nil {
				continue
			}
			if requirements, ok := more.Requirements(); ok {
				selector = selector.Add(requirements...)
			}
		}
	}
	slices.Sort(namespaces)
	return &term{key: topology + "|" + strings.Join(namespaces, ",") + "|" + selector.String(), topology: topology, selector: selector, namespaces: namespaces}
}
