package autoscaler

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/nodepool/machines"
)

// capacityPrefix is that of annotations by which users correct what a provider says of its machines.
const capacityPrefix = "capacity.cluster-autoscaler.kubernetes.io/"

// defaultPods is the kubelet's default.
const defaultPods = "110"

// capacityAnnotations are where a group says what a machine offers; later ones win.
var capacityAnnotations = []struct {
	key, unit string
	resource  corev1.ResourceName
}{
	{machines.CPUAnnotation, "", corev1.ResourceCPU},
	{machines.MemoryAnnotation, "Mi", corev1.ResourceMemory},
	{machines.GPUAnnotation, "", "nvidia.com/gpu"},
	{capacityPrefix + "cpu", "", corev1.ResourceCPU},
	{capacityPrefix + "memory", "", corev1.ResourceMemory},
	{capacityPrefix + "ephemeral-disk", "", corev1.ResourceEphemeralStorage},
	{capacityPrefix + "maxPods", "", corev1.ResourcePods},
}

// observeTemplates finds out what a machine of each group would be: like a node that it has, else as its template says.
func (l *Loop) observeTemplates(ctx context.Context, obs *Observed) error {
	byName := map[string]*corev1.Node{}
	for _, n := range obs.Nodes {
		byName[n.Name] = n
	}
	for i := range obs.Groups {
		g := &obs.Groups[i]
		for _, m := range g.Machines {
			if n := byName[m.Node]; n != nil && serves(n) && !m.Deleting {
				g.Template = likeNode(n)
				break
			}
		}
		if g.Template != nil {
			continue
		}
		var err error
		if g.Template, g.Unknown, err = l.fromTemplate(ctx, g); err != nil {
			return err
		}
	}
	obs.Priorities = l.priorities(ctx)
	return nil
}

// likeNode is another node of the same kind.
func likeNode(n *corev1.Node) *corev1.Node {
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: n.DeepCopy().Labels}}
	delete(out.Labels, corev1.LabelHostname)
	for _, t := range n.Spec.Taints {
		if !strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Key != "DeletionCandidateOfClusterAutoscaler" && t.Key != "ToBeDeletedByClusterAutoscaler" {
			out.Spec.Taints = append(out.Spec.Taints, t)
		}
	}
	out.Status.Allocatable = n.DeepCopy().Status.Allocatable
	return out
}

// fromTemplate is a node as the machine template and the annotations of a group promise it.
func (l *Loop) fromTemplate(ctx context.Context, g *Group) (node *corev1.Node, unknown string, err error) {
	t := templateOf(g.Object)
	capacity, arch, err := l.capacityOf(ctx, t.Spec.InfrastructureRef.APIGroup, t.Spec.InfrastructureRef.Kind, t.Spec.InfrastructureRef.Name)
	if err != nil {
		return nil, "", err
	}
	annotations := g.Object.GetAnnotations()
	for _, a := range capacityAnnotations {
		if text, ok := annotations[a.key]; ok {
			q, err := resource.ParseQuantity(text + a.unit)
			if err != nil {
				return nil, fmt.Sprintf("annotation %s is not a quantity", a.key), nil //nolint:nilerr // because trying again does not help; the group is held
			}
			capacity[a.resource] = q
		}
	}
	if _, ok := capacity[corev1.ResourcePods]; !ok {
		capacity[corev1.ResourcePods] = resource.MustParse(defaultPods)
	}
	if capacity.Cpu().IsZero() || capacity.Memory().IsZero() {
		return nil, "it has no node, and neither its machine template nor its annotations say what a machine offers", nil
	}
	node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelOSStable: "linux", hyperv1.NodePoolLabel: g.Name}}}
	if arch != "" {
		node.Labels[corev1.LabelArchStable] = arch
	}
	for k, v := range t.Labels {
		if name, ok := strings.CutPrefix(k, hyperv1.NodeLabelPrefix); ok {
			node.Labels[name] = v
		}
	}
	for pair := range strings.SplitSeq(annotations[machines.CapacityLabelsAnnotation], ",") {
		if k, v, ok := strings.Cut(pair, "="); ok && k != "" {
			node.Labels[k] = v
		}
	}
	node.Spec.Taints = taintsOf(t.Annotations[hyperv1.NodePoolTaintsAnnotation], annotations[machines.CapacityTaintsAnnotation])
	node.Status.Allocatable = capacity
	return node, "", nil
}

// taintsOf reads taints that new nodes have: as a list of the API, and as key[=value]:effect. Both say the same when there are both.
func taintsOf(list, text string) []corev1.Taint {
	var taints []corev1.Taint
	if json.Unmarshal([]byte(list), &taints) == nil && len(taints) > 0 {
		return taints
	}
	taints = nil
	for item := range strings.SplitSeq(text, ",") {
		i := strings.LastIndex(item, ":")
		if i <= 0 {
			continue
		}
		key, value, _ := strings.Cut(item[:i], "=")
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(item[i+1:])})
	}
	return taints
}

// capacityOf reads what the infrastructure provider says of its machines. There may be nothing.
func (l *Loop) capacityOf(ctx context.Context, group, kind, name string) (corev1.ResourceList, string, error) {
	none := corev1.ResourceList{}
	mapping, err := l.Management.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		return none, "", fmt.Errorf("finding kind %s of %s: %w", kind, group, err)
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := l.Management.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: name}, obj); apierrors.IsNotFound(err) {
		return none, "", nil
	} else if err != nil {
		return none, "", fmt.Errorf("reading %s %s/%s: %w", kind, l.Namespace, name, err)
	}
	arch, _, _ := unstructured.NestedString(obj.Object, "status", "nodeInfo", "architecture")
	text, _, _ := unstructured.NestedMap(obj.Object, "status", "capacity")
	out := corev1.ResourceList{}
	for name, v := range text {
		if q, err := resource.ParseQuantity(fmt.Sprint(v)); err == nil {
			out[corev1.ResourceName(name)] = q
		}
	}
	return out, arch, nil
}

// Bounds of the user's priorities, which come from the hosted cluster.
const maxPriorities, maxPatterns = 100, 1000

// priorities reads which groups the user prefers. Without a ConfigMap, or with one that can't be read, there is no preference.
func (l *Loop) priorities(ctx context.Context) []Preference {
	cm := &corev1.ConfigMap{}
	if err := l.Hosted.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: PrioritiesConfigMap}, cm); err != nil {
		return nil
	}
	return parsePriorities(cm.Data[prioritiesKey])
}

func parsePriorities(text string) []Preference {
	raw := map[string][]string{}
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil || len(raw) > maxPriorities {
		return nil
	}
	var out []Preference
	patterns := 0
	for key, list := range raw {
		n, err := strconv.Atoi(key)
		if err != nil {
			continue
		}
		preference := Preference{Priority: n}
		for _, pattern := range list {
			if patterns++; patterns > maxPatterns || len(pattern) > 256 {
				continue
			}
			if re, err := regexp.Compile(pattern); err == nil { // of linear time, whatever the pattern
				preference.Names = append(preference.Names, re)
			}
		}
		out = append(out, preference)
	}
	return out
}

// fieldSelector is a field selector as it is sent.
type fieldSelector string

func (s fieldSelector) ApplyToList(o *client.ListOptions) {
	o.FieldSelector = fields.ParseSelectorOrDie(string(s))
}
