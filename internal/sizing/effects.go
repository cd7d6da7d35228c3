package sizing

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

// AppliedAnnotation on a HostedCluster lists the annotations that follow from its size, separated by commas, so that one that a new size lacks
// is taken away, and none that a user set.
const AppliedAnnotation = "hypershift.openshift.io/size-effects"

// Effects are the annotations of a HostedCluster that follow from its size.
func Effects(size *schedulingv1alpha1.SizeConfiguration) map[string]string {
	out := map[string]string{}
	e := size.Effects
	if e == nil {
		return out
	}
	text := func(key string, value *string) {
		if value != nil && *value != "" {
			out[key] = *value
		}
	}
	number := func(key string, value *int) {
		if value != nil {
			out[key] = strconv.Itoa(*value)
		}
	}
	text(hyperv1.KubeAPIServerGOMemoryLimitAnnotation, &e.KASGoMemLimit)
	text(hyperv1.ControlPlanePriorityClass, e.ControlPlanePriorityClassName)
	text(hyperv1.EtcdPriorityClass, e.EtcdPriorityClassName)
	text(hyperv1.APICriticalPriorityClass, e.APICriticalPriorityClassName)
	number(hyperv1.KubeAPIServerMaximumRequestsInFlight, e.MaximumRequestsInflight)
	number(hyperv1.KubeAPIServerMaximumMutatingRequestsInFlight, e.MaximumMutatingRequestsInflight)
	if t := e.MachineHealthCheckTimeout; t != nil {
		out[hyperv1.MachineHealthCheckTimeoutAnnotation] = t.Duration.String()
	}
	for _, r := range e.ResourceRequests {
		var parts []string
		if r.Memory != nil {
			parts = append(parts, "memory="+r.Memory.String())
		}
		if r.CPU != nil {
			parts = append(parts, "cpu="+r.CPU.String())
		}
		if len(parts) > 0 {
			out[requestKey(r)] = strings.Join(parts, ",")
		}
	}
	return out
}

// Changes are the annotations to set (or, with nil, to take away) on a HostedCluster, so that it has those wanted; empty: it has. Those that an
// earlier size set and this one lacks are taken away.
func Changes(hc *hyperv1.HostedCluster, wanted map[string]string) map[string]*string {
	changes := map[string]*string{}
	for _, key := range strings.Split(hc.Annotations[AppliedAnnotation], ",") {
		if _, still := wanted[key]; key != "" && !still && ours(key) {
			if _, there := hc.Annotations[key]; there {
				changes[key] = nil
			}
		}
	}
	for key, value := range wanted {
		if have, ok := hc.Annotations[key]; !ok || have != value {
			changes[key] = &value
		}
	}
	record := strings.Join(slices.Sorted(maps.Keys(wanted)), ",")
	if have, ok := hc.Annotations[AppliedAnnotation]; have != record || !ok && record != "" {
		changes[AppliedAnnotation] = &record
	}
	return changes
}

// ours tells the annotations that may follow from a size: whatever the record says, no other is ever taken away.
func ours(key string) bool {
	return strings.HasPrefix(key, hyperv1.ResourceRequestOverrideAnnotationPrefix+"/") || slices.Contains([]string{
		hyperv1.KubeAPIServerGOMemoryLimitAnnotation, hyperv1.ControlPlanePriorityClass, hyperv1.EtcdPriorityClass, hyperv1.APICriticalPriorityClass,
		hyperv1.KubeAPIServerMaximumRequestsInFlight, hyperv1.KubeAPIServerMaximumMutatingRequestsInFlight, hyperv1.MachineHealthCheckTimeoutAnnotation,
		hyperv1.RequestServingNodeAdditionalSelectorAnnotation, hyperv1.AWSLoadBalancerTargetNodesAnnotation,
	}, key)
}

// IsEffect tells whether an annotation of a HostedCluster followed from its size.
func IsEffect(hc *hyperv1.HostedCluster, key string) bool {
	return key == AppliedAnnotation || slices.Contains(strings.Split(hc.Annotations[AppliedAnnotation], ","), key)
}
