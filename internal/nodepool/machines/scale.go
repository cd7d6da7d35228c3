package machines

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/machine"
)

// Replicas is how many machines a pool is to have. live is what the MachineDeployment or MachineSet asks for, nil when there is none.
//
// floor is the fewest that an autoscaler may leave: 1 for a pool that cannot start from no machine, because nothing tells what one would offer.
//
// With autoScaling the number is the autoscaler's, as long as it keeps to the bounds and the floor.
func Replicas(spec *hyperv1.NodePoolSpec, live *int32, floor int32) int32 {
	a := spec.AutoScaling
	if a == nil {
		return max(ptr.Deref(spec.Replicas, 0), 0)
	}
	fewest := least(a, floor)
	return min(max(ptr.Deref(live, fewest), fewest), a.Max)
}

// least is what an autoscaler may shrink a pool to. It is told the same as Replicas keeps to: otherwise it would take the last machine away, and Replicas
// would bring it back, for ever.
func least(a *hyperv1.NodePoolAutoScaling, floor int32) int32 { return max(ptr.Deref(a.Min, 0), floor) }

// mebibyte is the unit of the memory annotation.
const mebibyte = 1 << 20

// CapacityAnnotations tell an autoscaler what a machine of the pool would offer. They are for templates that do not say so themselves.
func CapacityAnnotations(spec *hyperv1.NodePoolSpec, c *machine.Capacity) map[string]string {
	if c == nil {
		return nil
	}
	annotations := map[string]string{
		CPUAnnotation:    strconv.FormatInt(c.CPU.Value(), 10),
		MemoryAnnotation: strconv.FormatInt(c.Memory.Value()/mebibyte, 10),
	}
	if c.GPU > 0 {
		annotations[GPUAnnotation] = strconv.FormatInt(c.GPU, 10)
	}
	labels := maps.Clone(spec.NodeLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[archLabel] = spec.Arch
	pairs := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, k+"="+labels[k])
	}
	annotations[CapacityLabelsAnnotation] = strings.Join(pairs, ",")
	if taints := capacityTaints(spec.Taints); taints != "" {
		annotations[CapacityTaintsAnnotation] = taints
	}
	return annotations
}

func capacityTaints(taints []hyperv1.Taint) string {
	list := make([]string, 0, len(taints))
	for _, t := range taints {
		value := ""
		if t.Value != "" {
			value = "=" + t.Value
		}
		list = append(list, fmt.Sprintf("%s%s:%s", t.Key, value, t.Effect))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
