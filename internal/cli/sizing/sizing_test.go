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
