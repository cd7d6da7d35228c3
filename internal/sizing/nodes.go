package sizing

import (
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

// NodesPerZone is how many nodes each zone of the management cluster needs for what doesn't serve requests: as many as the sizes of the hosted clusters say, by name, and the
// reserve. A cluster without a size counts as one of the smallest, one of an unknown size not at all. ok is false where sizes say nothing about it.
func NodesPerZone(spec *schedulingv1alpha1.ClusterSizingConfigurationSpec, clusters []string) (nodes int64, ok bool) {
	sizes := Sizes(spec.Sizes)
	var milli int64
	for i := range sizes {
		if sizes[i].Management == nil || sizes[i].Management.NonRequestServingNodesPerZone == nil {
			return 0, false
		}
	}
	for _, name := range clusters {
		size := sizes.Named(name)
		if name == "" {
			size = sizes.Smallest()
		}
		if size != nil {
			milli += size.Management.NonRequestServingNodesPerZone.MilliValue()
		}
	}
	if spec.NonRequestServingNodesBufferPerZone != nil {
		milli += spec.NonRequestServingNodesBufferPerZone.MilliValue()
	}
	return (max(milli, 0) + 999) / 1000, len(sizes) > 0
}
