package admission

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
)

func TestCapacityMetrics(t *testing.T) {
	g := NewWithT(t)
	hc := hostedclustertest.Example("clusters", "x", func(hc *hyperv1.HostedCluster) { hc.UID, hc.Spec.ClusterID = "1", "id" })
	c := &Queue{}
	registry := prometheus.NewPedanticRegistry()
	g.Expect(c.Register(registry)).To(Succeed())
	g.Expect((&Queue{}).Register(registry)).To(Succeed(), "another operator of a test")
	g.Expect((*Queue)(nil).Register(registry)).To(Succeed())
	for range 2 { // it is decided once, and looked at again and again
		c.remember(hc, capacity.Amounts{corev1.ResourceCPU: 245, corev1.ResourceMemory: 1 << 20})
	}
	expect := func(text string) {
		t.Helper()
		g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(text), "hypershift_cluster_capacity_missing", "hypershift_control_plane_admissions_total")).To(Succeed())
	}
	counted := `# HELP hypershift_control_plane_admissions_total Decisions about the start of control planes: Admitted, Waiting (put in the queue for want of room) or CapacityGrows (started without room, as nodes are added).
# TYPE hypershift_control_plane_admissions_total counter
hypershift_control_plane_admissions_total{decision="Waiting"} 1
`
	expect(`# HELP hypershift_cluster_capacity_missing Resources that the nodes lack for the control plane of a hosted cluster that waits for room, and for all that are ahead of it.
# TYPE hypershift_cluster_capacity_missing gauge
hypershift_cluster_capacity_missing{_id="id",name="demo",namespace="clusters",resource="cpu",unit="core"} 0.245
hypershift_cluster_capacity_missing{_id="id",name="demo",namespace="clusters",resource="memory",unit="byte"} 1.048576e+06
` + counted)
	c.Forget(hc.UID)
	expect(counted)
}
