package fleet

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/sizing"
	"hcp.internal/platform/internal/testenv"
)

func TestNodesPerZoneAreSeen(t *testing.T) {
	config := func(perZone string) *schedulingv1alpha1.ClusterSizingConfiguration {
		c := &schedulingv1alpha1.ClusterSizingConfiguration{ObjectMeta: metav1.ObjectMeta{Name: sizing.ConfigurationName}}
		c.Spec.Concurrency = schedulingv1alpha1.ConcurrencyConfiguration{Limit: 5, SlidingWindow: metav1.Duration{Duration: time.Minute}}
		c.Spec.Sizes = []schedulingv1alpha1.SizeConfiguration{{Name: "small"}}
		if perZone != "" {
			c.Spec.Sizes[0].Management = &schedulingv1alpha1.Management{NonRequestServingNodesPerZone: ptr.To(resource.MustParse(perZone))}
		}
		return c
	}
	var clusters []client.Object
	for _, name := range []string{"one", "two", "three"} {
		hc := testenv.HostedCluster("clusters", name)
		hc.Labels = map[string]string{hyperv1.HostedClusterSizeLabel: "small"}
		clusters = append(clusters, hc)
	}
	for name, tc := range map[string]struct {
		perZone string
		want    string
	}{
		"When sizes say how many nodes they need it should tell how many these are": {perZone: "0.5", want: `# HELP hypershift_control_plane_nodes_per_zone How many nodes each zone needs for what doesn't serve requests of hosted clusters, as management.nonRequestServingNodesPerZone of their sizes says; absent where sizes don't.
# TYPE hypershift_control_plane_nodes_per_zone gauge
hypershift_control_plane_nodes_per_zone 2
`},
		"When sizes don't say it should tell nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(newScheme(g)).WithObjects(clusters...).WithObjects(config(tc.perZone)).Build()
			m := NewMetrics(c, testclock.NewFakePassiveClock(time.Now()))
			g.Expect(testutil.CollectAndCompare(m, strings.NewReader(tc.want), "hypershift_control_plane_nodes_per_zone")).To(Succeed())
		})
	}
}
