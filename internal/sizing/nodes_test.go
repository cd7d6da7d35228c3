package sizing

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
)

func TestNodesPerZone(t *testing.T) {
	per := func(s schedulingv1alpha1.SizeConfiguration, nodes string) schedulingv1alpha1.SizeConfiguration {
		s.Management = &schedulingv1alpha1.Management{NonRequestServingNodesPerZone: ptr.To(resource.MustParse(nodes))}
		return s
	}
	small, large := size("small", 0, 10), size("large", 11)
	told := []schedulingv1alpha1.SizeConfiguration{per(large, "1.5"), per(small, "0.2")}
	for name, tc := range map[string]struct {
		sizes    []schedulingv1alpha1.SizeConfiguration
		reserve  string
		clusters []string
		want     int64
		unknown  bool
	}{
		"When sizes don't say it should be unknown":                  {sizes: []schedulingv1alpha1.SizeConfiguration{small, large}, clusters: []string{"small"}, unknown: true},
		"When nobody is there it should be none":                     {sizes: told},
		"When nobody is there it should be the reserve":              {sizes: told, reserve: "2", want: 2},
		"When parts of nodes are needed it should be a whole one":    {sizes: told, clusters: []string{"small"}, want: 1},
		"When parts make a whole it should be no more":               {sizes: told, clusters: slices.Repeat([]string{"small"}, 5), want: 1},
		"When sizes differ it should add them up, with the reserve":  {sizes: told, reserve: "0.3", clusters: []string{"small", "large", "large"}, want: 4},
		"When a cluster has no size it should count as the smallest": {sizes: told, clusters: slices.Repeat([]string{""}, 6), want: 2},
		"When a size is unknown it should not count":                 {sizes: told, clusters: []string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := schedulingv1alpha1.ClusterSizingConfigurationSpec{Sizes: tc.sizes}
			if tc.reserve != "" {
				spec.NonRequestServingNodesBufferPerZone = ptr.To(resource.MustParse(tc.reserve))
			}
			got, ok := NodesPerZone(&spec, tc.clusters)
			g.Expect(ok).To(Equal(!tc.unknown))
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
