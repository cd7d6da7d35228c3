package sizing

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

// defaultFraction is the share of a node's memory that an API server may use, in thousandths, unless the configuration says otherwise.
const defaultFraction = 650

// Recommend is the smallest size on whose nodes an API server that wants so much memory finds it in its share, or else the largest one. Every size has to
// say how much memory its nodes have.
func Recommend(spec *schedulingv1alpha1.ClusterSizingConfigurationSpec, memory resource.Quantity) (string, error) {
	fraction := int64(defaultFraction)
	if f := spec.ResourceBasedAutoscaling.KubeAPIServerMemoryFraction; f != nil {
		fraction = f.MilliValue()
	}
	sorted := byRange(spec.Sizes)
	for i := range sorted {
		m := memoryOf(&sorted[i])
		if m == nil {
			return "", fmt.Errorf("spec.sizes[%s].capacity.memory is missing: set it for every size, so that sizes can follow from what API servers use", sorted[i].Name)
		}
		if m.Value()/1000*fraction >= memory.Value() {
			return sorted[i].Name, nil
		}
	}
	return sorted[len(sorted)-1].Name, nil
}
