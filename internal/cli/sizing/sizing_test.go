package sizing

import (
	"bytes"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/placement"
	"hcp.internal/platform/internal/testenv"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func sizes() *schedulingv1alpha1.ClusterSizingConfiguration {
	return &schedulingv1alpha1.ClusterSizingConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: schedulingv1alpha1.ClusterSizingConfigurationSpec{
		TransitionDelay: schedulingv1alpha1.TransitionDelayConfiguration{Increase: metav1.Duration{Duration: 30 * time.Second}},
		Sizes: []schedulingv1alpha1.SizeConfiguration{
			{Name: "small", Criteria: schedulingv1alpha1.NodeCountCriteria{To: ptr.To[int32](10)}},
			{Name: "large", Criteria: schedulingv1alpha1.NodeCountCriteria{From: 11}, Effects: &schedulingv1alpha1.Effects{ResourceRequests: []schedulingv1alpha1.ResourceRequest{
				{DeploymentName: "etcd", ContainerName: "etcd", CPU: ptr.To(resource.MustParse("2"))}}}},
		}}}
}

func TestPlan(t *testing.T) {
	g := NewWithT(t)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Labels: map[string]string{hyperv1.HostedClusterSizeLabel: "small"}}}
	hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.ClusterSizeComputed, Status: metav1.ConditionTrue, Reason: "small", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}, Spec: hyperv1.NodePoolSpec{ClusterName: "demo", Replicas: ptr.To[int32](20)}}
	c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(hc, pool, sizes()).Build()
	spec, err := configuration(t.Context(), c, "", nil)
	g.Expect(err).NotTo(HaveOccurred())
	rows, err := Plan(t.Context(), c, spec, noon)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rows).To(HaveLen(1))
	g.Expect(rows[0].Wanted).To(Equal("large"))
	g.Expect(rows[0].When).To(Equal("in 30s at the earliest"))
	g.Expect(rows[0].Effects).To(ConsistOf("resource-request-override.hypershift.openshift.io/etcd.etcd=cpu=2"))
	var out bytes.Buffer
	g.Expect(printPlan(&out, rows)).To(Succeed())
	g.Expect(out.String()).To(MatchRegexp(`clusters/demo +small +large +in 30s at the earliest +NodePools ask for 20 nodes, and large is for 11 and more`))
	t.Run("When sizes say how many nodes they need it should print these for sizes to come", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		g.Expect(printNodes(&out, spec, rows)).To(Succeed())
		g.Expect(out.String()).To(BeEmpty(), "they don't say")
		told := spec.DeepCopy()
		for i, nodes := range []string{"0.2", "2.5"} {
			told.Sizes[i].Management = &schedulingv1alpha1.Management{NonRequestServingNodesPerZone: ptr.To(resource.MustParse(nodes))}
		}
		g.Expect(printNodes(&out, told, rows)).To(Succeed())
		g.Expect(out.String()).To(ContainSubstring("with these sizes: 3"))
	})
	t.Run("When the sizes of a file make no sense it should say why", func(t *testing.T) {
		_, err := configuration(t.Context(), c, "-", strings.NewReader(`{"apiVersion":"scheduling.hypershift.openshift.io/v1alpha1","kind":"ClusterSizingConfiguration","spec":{"sizes":[{"name":"a","criteria":{"from":1}}]}}`))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no size is for 0 nodes")))
	})
	t.Run("When there are no sizes it should say how to get them", func(t *testing.T) {
		_, err := configuration(t.Context(), fake.NewClientBuilder().WithScheme(connect.Scheme()).Build(), "", nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("install with --enable-size-tagging")))
	})
}

func TestCapacity(t *testing.T) {
	g := NewWithT(t)
	node := func(name string, cpu string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("500")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
	}
	closed := node("closed", "8")
	closed.Spec.Unschedulable = true
	c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(node("a", "4"), closed, sizes()).Build()
	model, err := template(t.Context(), c, client.ObjectKey{}, "SingleReplica")
	g.Expect(err).NotTo(HaveOccurred())
	fits, err := Capacity(t.Context(), c, model)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fits).To(HaveLen(2))
	g.Expect(fits[0].Size).To(Equal("small"))
	g.Expect(fits[0].Count).To(BeNumerically(">", 3))
	g.Expect(fits[1].Count).To(Equal(1), "its etcd asks for two processors: %v", fits[1])
	for _, f := range fits {
		g.Expect(f.Lack).To(ContainSubstring("is missing"))
		g.Expect(f.Closed).To(Equal(1))
	}
	var out bytes.Buffer
	g.Expect(printFits(&out, fits)).To(Succeed())
	g.Expect(out.String()).To(MatchRegexp(`large +1 +2\d+m CPU`))
	_, err = template(t.Context(), c, client.ObjectKey{Namespace: "clusters", Name: "demo"}, "")
	g.Expect(err).To(MatchError(ContainSubstring("there is no HostedCluster clusters/demo")))
	_, err = template(t.Context(), c, client.ObjectKey{}, "Some")
	g.Expect(err).To(MatchError(ContainSubstring("must be SingleReplica or HighlyAvailable")))
}

func TestCapacityWithNodesForRequests(t *testing.T) {
	node := func(name, zone string, labels ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("500")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
		if len(labels) > 0 {
			n.Labels[hyperv1.RequestServingComponentLabel], n.Labels[hyperv1.PairedNodesLabel], n.Labels[hyperv1.ClusterSizeLabel] = "true", labels[0], labels[1]
			n.Spec.Taints = []corev1.Taint{{Key: hyperv1.RequestServingComponentLabel, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		}
		if len(labels) > 2 {
			n.Labels[placement.ClusterLabel] = labels[2]
		}
		return n
	}
	hc := testenv.HostedCluster("clusters", "demo")
	hc.Annotations = map[string]string{hyperv1.TopologyAnnotation: hyperv1.DedicatedRequestServingComponentsTopology}
	hc.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
	hc.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(hc, sizes(), node("c1", "z1"), node("c2", "z2"), node("c3", "z3"),
		node("r1", "z1", "p1", "small", "clusters-demo"), node("r2", "z2", "p1", "small", "clusters-demo"),
		node("r3", "z1", "p2", "small"), node("r4", "z2", "p2", "small"), node("r5", "z1", "p3", "small"), node("r6", "z2", "p3", "small"), node("r7", "z1", "p4", "small")).Build()
	fits := func(t *testing.T, like string) []Fit {
		g := NewWithT(t)
		model, err := template(t.Context(), c, client.ObjectKey{Namespace: "clusters", Name: like}, "HighlyAvailable")
		g.Expect(err).NotTo(HaveOccurred())
		fits, err := Capacity(t.Context(), c, model)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(fits).To(HaveLen(2))
		return fits
	}
	t.Run("When a cluster is to have nodes of its own for requests it should count free pairs", func(t *testing.T) {
		g, fits := NewWithT(t), fits(t, "demo")
		g.Expect(fits[0].Count).To(Equal(2), "p2 and p3: p1 is taken, and p4 is half a pair: %v", fits[0])
		g.Expect(fits[0].Lack).To(ContainSubstring("no more pair of nodes for requests is free for size small"))
		g.Expect(fits[0].Needs).To(ContainSubstring("nodes for requests: 2"))
		g.Expect(fits[1].Count).To(BeZero())
		g.Expect(fits[1].Lack).To(ContainSubstring("for size large"))
	})
	t.Run("When a cluster is to have none it should count the other nodes", func(t *testing.T) {
		g, fits := NewWithT(t), fits(t, "")
		g.Expect(fits[0].Count).To(BeNumerically(">", 10))
		g.Expect(fits[0].Needs).NotTo(ContainSubstring("nodes for requests"))
	})
}
