//go:build aws

package awsmachines

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	platformaws "hcp.internal/platform/internal/platform/aws"
	"hcp.internal/platform/test/awsemulator"
	"hcp.internal/platform/test/awshypervisor"
)

const stub = `{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"https://ignition.example.com/ignition"}]}}}`

// TestMachines is the life of machines in standard groups, TestPrivateMachines in HyperShift's, which the same programs see as the standard ones.
func TestMachines(t *testing.T)        { lifeOfMachines(t, "demo", false) }
func TestPrivateMachines(t *testing.T) { lifeOfMachines(t, "hidden", true) }

func lifeOfMachines(t *testing.T, name string, private bool) {
	w := newWorld(t, name, private)
	before := w.aws.State(t, region)
	w.startManagers()
	w.makeCluster()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		awshypervisor.Run(ctx, w.ec2, paper{w.workload})
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	g := NewWithT(t)

	w.poolOf(nil)
	w.makeTemplate("first")
	w.makeDeployment("first", 2)
	g.Eventually(w.joined, patience, often).Should(HaveLen(2), w.describe)
	first := w.joined()

	t.Run("When machines are made they should be instances as the NodePool says, with its user data as it is", func(t *testing.T) { w.asAsked(t, first) })
	if private {
		t.Run("When objects are private none should be stored in a standard group", w.hidden)
	}
	t.Run("When nothing changes nothing should be changed in AWS", w.quiet)
	t.Run("When tags change instances should get them and stay", func(t *testing.T) { w.retag(t, first) })
	t.Run("When a pool grows and shrinks instances should come and go", func(t *testing.T) { w.scale(t, first) })
	t.Run("When AWS has no room for a machine the Machine should say so, and come when there is", w.noRoom)
	t.Run("When the answer to a launch is lost there should be one instance", w.lostAnswer)
	t.Run("When an instance is terminated from outside its machine should be replaced", w.terminated)
	t.Run("When the template changes every instance should be replaced, and machines of Spot be such", w.roll)
	t.Run("When the pool is deleted nothing of it should be left in AWS", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.client.Delete(t.Context(), &clusterv1.MachineDeployment{ObjectMeta: w.meta("workers")})).To(Succeed())
		g.Eventually(w.running, patience, often).Should(BeEmpty(), w.describe)
		g.Eventually(func() int { return len(w.machines()) }, patience, often).Should(BeZero(), w.describe)
		g.Expect(slices.DeleteFunc(awsemulator.Changes(before, w.aws.State(t, region)), func(line string) bool {
			// moto keeps the network interfaces of terminated machines, and with them addresses of the subnet.
			return strings.Contains(line, "DescribeNetworkInterfaces") || strings.Contains(line, "DescribeSubnets")
		})).To(BeEmpty())
	})
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.ns, Name: name}
}

// makeDeployment writes what the NodePool controller does, with the defaults of the webhooks that nobody registers.
func (w *world) makeDeployment(template string, replicas int32) {
	g := NewWithT(w.T)
	cluster := w.hc.Spec.InfraID
	labels := map[string]string{clusterv1.ClusterNameLabel: cluster, clusterv1.MachineDeploymentNameLabel: "workers"}
	g.Expect(w.client.Create(w.Context(), &corev1.Secret{ObjectMeta: w.meta("user-data"), Data: map[string][]byte{"value": []byte(stub)}})).To(Succeed())
	g.Expect(w.client.Create(w.Context(), &clusterv1.MachineDeployment{ObjectMeta: w.meta("workers"), Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: cluster, Replicas: ptr.To(replicas), Selector: metav1.LabelSelector{MatchLabels: labels},
		Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
			ClusterName: cluster, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: template},
		}},
		Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}},
	}})).To(Succeed())
	g.Expect(w.client.Create(w.Context(), &clusterv1.MachineHealthCheck{ObjectMeta: w.meta("workers"), Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: cluster, Selector: metav1.LabelSelector{MatchLabels: labels},
		Checks: clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: ptr.To[int32](1200), UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](1)}}}, // eight minutes in a NodePool
		Remediation: clusterv1.MachineHealthCheckRemediation{TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyLessThanOrEqualTo: ptr.To(intstr.FromString("100%"))}},
	}})).To(Succeed())
}

func (w *world) replicas(n int32) {
	w.patchDeployment(fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
}

func (w *world) patchDeployment(body string) {
	w.Helper()
	NewWithT(w.T).Expect(w.client.Patch(w.Context(), &clusterv1.MachineDeployment{ObjectMeta: w.meta("workers")}, client.RawPatch("application/merge-patch+json", []byte(body)))).To(Succeed())
}

func (w *world) machines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	if w.client.List(w.Context(), list, client.InNamespace(w.ns)) != nil {
		return make([]clusterv1.Machine, 100) // no number that is waited for
	}
	return list.Items
}

// joined are the instances of Machines that have a node, sorted.
func (w *world) joined() []string {
	var ids []string
	for _, m := range w.machines() {
		if m.Status.NodeRef.Name != "" && m.DeletionTimestamp.IsZero() {
			ids = append(ids, m.Spec.ProviderID[strings.LastIndex(m.Spec.ProviderID, "/")+1:])
		}
	}
	slices.Sort(ids)
	return ids
}

// running are the instances that aren't terminated, sorted.
func (w *world) running() []string {
	var ids []string
	for _, i := range awshypervisor.Instances(w.Context(), w.ec2) {
		if i.State.Name == types.InstanceStateNameRunning || i.State.Name == types.InstanceStateNamePending {
			ids = append(ids, sdk.ToString(i.InstanceId))
		}
	}
	return ids
}

// launches are the calls that made instances.
func (w *world) launches() []awsemulator.Call { return w.calls("ec2:RunInstances") }

func (w *world) calls(name string) []awsemulator.Call {
	return slices.DeleteFunc(w.aws.Calls(), func(c awsemulator.Call) bool { return c.String() != name })
}

func (w *world) describe() string {
	var b strings.Builder
	for _, m := range w.machines() {
		fmt.Fprintf(&b, "Machine %s: phase %s, provider ID %s, node %s\n", m.Name, m.Status.Phase, m.Spec.ProviderID, m.Status.NodeRef.Name)
		for _, c := range m.Status.Conditions {
			fmt.Fprintf(&b, "  %s %s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	fmt.Fprintf(&b, "%s\n", w.trouble())
	for _, c := range w.aws.Calls() {
		if c.Mutating || c.Status >= 400 {
			fmt.Fprintf(&b, "%s: %d\n", c, c.Status)
		}
	}
	return b.String()
}

var tagParam = regexp.MustCompile(`^TagSpecification\.\d+\.Tag\.\d+\.Key$`)

func (w *world) asAsked(t *testing.T, ids []string) {
	g := NewWithT(t)
	g.Expect(w.running()).To(Equal(ids))
	launches := w.launches()
	g.Expect(launches).To(HaveLen(2))
	for _, c := range launches {
		g.Expect(c.Params.Get("ImageId")).To(Equal(w.ami))
		g.Expect(c.Params.Get("InstanceType")).To(Equal("m5.large"))
		g.Expect(c.Params.Get("IamInstanceProfile.Name")).To(Equal(w.profile))
		g.Expect(c.Params.Get("NetworkInterface.1.SubnetId")).To(Equal(w.subnet))
		g.Expect(c.Params.Get("NetworkInterface.1.SecurityGroupId.1")).To(Equal(w.hc.Status.Platform.AWS.DefaultWorkerSecurityGroupID))
		g.Expect(c.Params.Get("BlockDeviceMapping.1.Ebs.VolumeSize")).To(Equal(fmt.Sprint(size)))
		g.Expect(c.Params.Get("BlockDeviceMapping.1.Ebs.VolumeType")).To(Equal("gp3"))
		g.Expect(c.Params.Get("MetadataOptions.HttpTokens")).To(Equal("optional"))
		g.Expect(c.Params.Get("MetadataOptions.HttpPutResponseHopLimit")).To(Equal("2"))
		var tags []string
		for key := range c.Params {
			if tagParam.MatchString(key) {
				tags = append(tags, c.Params.Get(key))
			}
		}
		g.Expect(tags).To(ContainElements("team", "kubernetes.io/cluster/"+w.hc.Spec.InfraID, "Name"))
	}
	for _, id := range ids {
		data, err := awshypervisor.UserData(t.Context(), w.ec2, id)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(data).To(Equal(stub))
	}
}

func (w *world) hidden(t *testing.T) {
	g := NewWithT(t)
	for group, want := range map[string]int{translate.Private: 2, translate.Standard: 0} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("infrastructure." + group + "/v1beta2")
		list.SetKind("AWSMachineList")
		g.Expect(w.workload.List(t.Context(), list, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(want), group)
	}
}

// passes waits until the provider has looked at its machines anew.
func (w *world) passes(g Gomega, n int) {
	before := len(w.providers())
	g.Eventually(func() int { return len(w.providers()) }, patience, often).Should(BeNumerically(">=", before+n))
}

// providers are the looks of the provider at instances.
func (w *world) providers() []awsemulator.Call {
	return slices.DeleteFunc(w.calls("ec2:DescribeInstances"), func(c awsemulator.Call) bool {
		return c.Params.Get("InstanceId.1") == "" && c.Params.Get("Filter.1.Name") == ""
	})
}

func (w *world) quiet(t *testing.T) {
	g := NewWithT(t)
	w.passes(g, 4)
	w.aws.Forget()
	w.passes(g, 4)
	var changes []string
	for _, c := range w.aws.Mutating() {
		changes = append(changes, c.String())
	}
	g.Expect(changes).To(BeEmpty())
}

func (w *world) retag(t *testing.T, ids []string) {
	g := NewWithT(t)
	w.hc.Spec.Platform.AWS.ResourceTags[1].Value = "green"
	retag := w.template().Retag
	for _, m := range w.machines() {
		u := w.object("AWSMachine", m.Spec.InfrastructureRef.Name)
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(u), u)).To(Succeed())
		before := u.DeepCopy()
		g.Expect(unstructured.SetNestedField(u.Object, retag.Value, "spec", retag.Field)).To(Succeed())
		g.Expect(w.client.Patch(t.Context(), u, client.MergeFrom(before))).To(Succeed())
	}
	g.Eventually(func(g Gomega) {
		for _, i := range awshypervisor.Instances(t.Context(), w.ec2) {
			g.Expect(i.Tags).To(ContainElement(types.Tag{Key: sdk.String("team"), Value: sdk.String("green")}))
		}
	}, patience, often).Should(Succeed())
	g.Expect(w.running()).To(Equal(ids))
}

func (w *world) scale(t *testing.T, first []string) {
	g := NewWithT(t)
	w.replicas(4)
	g.Eventually(w.joined, patience, often).Should(HaveLen(4), w.describe)
	g.Expect(w.joined()).To(ContainElements(first))
	w.replicas(1)
	g.Eventually(w.running, patience, often).Should(HaveLen(1), w.describe)
	g.Eventually(w.joined, patience, often).Should(HaveLen(1), w.describe)
	g.Expect(w.joined()).To(Equal(w.running()))
}

func (w *world) noRoom(t *testing.T) {
	g := NewWithT(t)
	w.aws.Fail(awsemulator.Fault{Service: "ec2", Action: "RunInstances", Code: "InsufficientInstanceCapacity", Status: 500})
	defer w.aws.Heal()
	w.replicas(2)
	g.Eventually(w.trouble, patience, often).Should(And(HavePrefix("InstanceProvisionFailed: "), ContainSubstring("InsufficientInstanceCapacity")), w.describe)
	told := func() (texts []string) {
		for _, u := range w.list("AWSMachine") {
			texts = append(texts, platformaws.Platform{}.ExplainMachine(&u))
		}
		return texts
	}
	g.Eventually(told, patience, often).Should(ContainElement(And(HavePrefix("AWS refuses EC2 RunInstances, code: InsufficientInstanceCapacity ("), ContainSubstring("another zone"))), "what a NodePool says")
	w.aws.Heal()
	g.Eventually(w.joined, patience, often).Should(HaveLen(2), w.describe)
	g.Expect(w.running()).To(HaveLen(2))
}

// trouble is what the provider tells of an instance that isn't ready; empty: all are.
func (w *world) trouble() string {
	list := w.list("AWSMachine")
	for _, u := range list {
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "InstanceReady" && c["status"] != "True" {
				return fmt.Sprintf("%v: %v", c["reason"], c["message"])
			}
		}
	}
	return ""
}

func (w *world) list(kind string) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(w.object(kind+"List", "").GroupVersionKind())
	_ = w.client.List(w.Context(), list, client.InNamespace(w.ns))
	return list.Items
}

func (w *world) lostAnswer(t *testing.T) {
	g := NewWithT(t)
	w.aws.Fail(awsemulator.Fault{Service: "ec2", Action: "RunInstances", Times: 1, Lost: true})
	defer w.aws.Heal()
	w.replicas(3)
	g.Eventually(w.joined, patience, often).Should(HaveLen(3), w.describe)
	g.Expect(w.running()).To(Equal(w.joined()))
}

func (w *world) terminated(t *testing.T) {
	g := NewWithT(t)
	before := w.joined()
	_, err := w.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: before[:1]})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		now := w.joined()
		g.Expect(now).To(HaveLen(3))
		g.Expect(now).NotTo(ContainElement(before[0]))
		g.Expect(now).To(ContainElements(before[1:]))
	}, patience, often).Should(Succeed(), w.describe)
	g.Expect(w.running()).To(Equal(w.joined()))
}

func (w *world) roll(t *testing.T) {
	g := NewWithT(t)
	before := w.joined()
	w.aws.Forget()
	w.poolOf(func(p *hyperv1.AWSNodePoolPlatform) {
		p.InstanceType = "m5.xlarge"
		p.Placement = &hyperv1.PlacementOptions{MarketType: hyperv1.PlacementMarketTypeSpot, Spot: &hyperv1.SpotOptions{MaxPrice: "0.5"}}
	})
	w.makeTemplate("second")
	w.patchDeployment(`{"spec":{"template":{"spec":{"infrastructureRef":{"name":"second"}}}}}`)
	g.Eventually(func(g Gomega) {
		now := w.joined()
		g.Expect(now).To(HaveLen(3))
		g.Expect(slices.ContainsFunc(now, func(id string) bool { return slices.Contains(before, id) })).To(BeFalse())
		g.Expect(w.running()).To(Equal(now))
	}, patience, often).Should(Succeed(), w.describe)
	for _, c := range w.launches() {
		g.Expect(c.Params.Get("InstanceType")).To(Equal("m5.xlarge"))
		g.Expect(c.Params.Get("InstanceMarketOptions.MarketType")).To(Equal("spot"))
		g.Expect(c.Params.Get("InstanceMarketOptions.SpotOptions.MaxPrice")).To(Equal("0.5"))
	}
}
