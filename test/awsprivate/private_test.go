//go:build aws

package awsprivate

import (
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/test/awsemulator"
)

func TestPrivateAccess(t *testing.T) {
	w := newWorld(t, "private")
	before := len(w.services())
	t.Run("When load balancers get names both should be connected to the VPC, with names that lead there", func(t *testing.T) {
		g := NewWithT(t)
		api, router := w.connected("kube-apiserver-private"), w.connected("private-router")
		g.Expect(api.Status.DNSNames).To(Equal([]string{"api.private.hypershift.local"}))
		g.Expect(router.Status.DNSNames).To(Equal([]string{"*.apps.private.hypershift.local"}))
		g.Expect(w.principals(api.Status.EndpointServiceName)).To(ConsistOf(arn("control-plane-operator")))
		g.Expect(api.Spec.SubnetIDs).To(Equal([]string{w.network.Zones[0].SubnetID}))
		groups, err := w.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{api.Status.SecurityGroupID}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(groups.SecurityGroups[0].IpPermissions).To(ConsistOf(And(HaveField("FromPort", HaveValue(Equal(int32(6443)))), HaveField("IpRanges", HaveLen(1)))))
	})
	t.Run("When nothing has to change nothing should be changed", func(t *testing.T) {
		g := NewWithT(t)
		w.nudge(arn("guest"))
		g.Eventually(func() []string { return w.principals(w.connected("private-router").Status.EndpointServiceName) }, patience, often).
			Should(ConsistOf(arn("control-plane-operator"), arn("guest")))
		w.connected("kube-apiserver-private")
		for _, call := range w.aws.Mutating() {
			g.Expect(call.Action).To(BeElementOf("CreateVpcEndpointServiceConfiguration", "CreateVpcEndpoint", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress",
				"ChangeResourceRecordSets", "ModifyVpcEndpointServicePermissions"), "made once, and only permissions changed since")
		}
		count := map[string]int{}
		for _, call := range w.aws.Mutating() {
			count[call.Action]++
		}
		g.Expect(count).To(And(HaveKeyWithValue("CreateVpcEndpointServiceConfiguration", 2), HaveKeyWithValue("CreateVpcEndpoint", 2), HaveKeyWithValue("CreateSecurityGroup", 2),
			HaveKeyWithValue("ChangeResourceRecordSets", 2)))
	})
	t.Run("When a NodePool comes in another zone the endpoint should reach there, too", func(t *testing.T) {
		w.makePool(w.network.Zones[1].SubnetID)
		NewWithT(t).Eventually(func(g Gomega) {
			g.Expect(w.endpoint(g, w.get(g, "private-router")).SubnetIds).To(ConsistOf(w.network.Zones[0].SubnetID, w.network.Zones[1].SubnetID))
		}, patience, often).Should(Succeed())
	})
	t.Run("When the endpoint and its record are deleted from outside they should be made again", func(t *testing.T) {
		g := NewWithT(t)
		old := w.connected("private-router").Status.EndpointID
		_, err := w.ec2.DeleteVpcEndpoints(t.Context(), &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{old}})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = w.route53.ChangeResourceRecordSets(t.Context(), &route53.ChangeResourceRecordSetsInput{HostedZoneId: &w.network.LocalZoneID, ChangeBatch: &r53types.ChangeBatch{Changes: []r53types.Change{{
			Action: r53types.ChangeActionUpsert, ResourceRecordSet: &r53types.ResourceRecordSet{Name: sdk.String("api.private.hypershift.local."), Type: r53types.RRTypeCname, TTL: sdk.Int64(5),
				ResourceRecords: []r53types.ResourceRecord{{Value: sdk.String("elsewhere.example.com")}}}}}}})
		g.Expect(err).NotTo(HaveOccurred())
		w.nudge(arn("second"))
		g.Eventually(func() string { return w.connected("private-router").Status.EndpointID }, patience, often).ShouldNot(Equal(old))
		g.Eventually(func() string { return w.record("api.private.hypershift.local") }, patience, often).ShouldNot(Equal("elsewhere.example.com"))
		w.connected("kube-apiserver-private")
	})
	t.Run("When the endpoint service is deleted from outside it should be made again, and the endpoint on it", func(t *testing.T) {
		g := NewWithT(t)
		old := w.connected("private-router").Status
		id := old.EndpointServiceName[len("com.amazonaws.vpce."+region+"."):]
		_, err := w.ec2.DeleteVpcEndpointServiceConfigurations(t.Context(), &ec2.DeleteVpcEndpointServiceConfigurationsInput{ServiceIds: []string{id}})
		g.Expect(err).NotTo(HaveOccurred())
		w.nudge(arn("third"))
		g.Eventually(func(g Gomega) {
			now := w.connected("private-router").Status
			g.Expect(now.EndpointServiceName).NotTo(Equal(old.EndpointServiceName))
			g.Expect(now.EndpointID).NotTo(Equal(old.EndpointID))
		}, patience, often).Should(Succeed())
		g.Expect(w.services()).To(HaveLen(before + 2))
	})
	t.Run("When AWS refuses the condition should say what to do, and nothing that changes", func(t *testing.T) {
		g := NewWithT(t)
		w.aws.Fail(awsemulator.Fault{Service: "ec2", Action: "DescribeVpcEndpointServicePermissions", Code: "UnauthorizedOperation"})
		w.nudge(arn("fourth"))
		g.Eventually(func(g Gomega) {
			c := conditions.Get(w.get(g, "private-router").Status.Conditions, hyperv1.AWSEndpointServiceAvailable)
			g.Expect(c).To(And(HaveField("Reason", "AWSError"), HaveField("Message", And(ContainSubstring("code: UnauthorizedOperation"), ContainSubstring("hypershift create iam aws"), Not(ContainSubstring("as the test"))))))
		}, patience, often).Should(Succeed())
		w.aws.Heal()
		w.connected("private-router")
	})
	t.Run("When they are deleted nothing should be left in AWS", func(t *testing.T) {
		g := NewWithT(t)
		api := w.connected("kube-apiserver-private")
		id := api.Status.EndpointServiceName[len("com.amazonaws.vpce."+region+"."):]
		w.aws.Connect(id, awsemulator.Connection{Endpoint: "vpce-0123456789abcdef0", State: "available"})
		w.aws.Fail(awsemulator.Fault{Service: "ec2", Action: "DeleteVpcEndpointServiceConfigurations", Times: 1, Status: 200, Raw: connected(id)})
		for _, name := range []string{"kube-apiserver-private", "private-router"} {
			g.Expect(w.c.Delete(t.Context(), w.get(g, name))).To(Succeed())
		}
		g.Eventually(func(g Gomega) {
			list := &hyperv1.AWSEndpointServiceList{}
			g.Expect(w.c.List(t.Context(), list, client.InNamespace(w.hcp.Namespace))).To(Succeed())
			g.Expect(list.Items).To(BeEmpty())
		}, patience, often).Should(Succeed())
		g.Expect(w.services()).To(HaveLen(before))
		g.Expect(w.endpoints("kube-apiserver-private")).To(BeEmpty())
		g.Expect(w.endpoints("private-router")).To(BeEmpty())
		g.Expect(w.record("api.private.hypershift.local") + w.record("*.apps.private.hypershift.local")).To(BeEmpty())
		_, err := w.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{api.Status.SecurityGroupID}})
		g.Expect(err).To(HaveOccurred())
		g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKeyFromObject(api), api))).To(BeTrue())
	})
}

// connected is AWS's answer to the deletion of an endpoint service that somebody is connected to.
func connected(id string) string {
	return `<DeleteVpcEndpointServiceConfigurationsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId><unsuccessful><item><resourceId>` + id +
		`</resourceId><error><code>ExistingVpcEndpointConnections</code><message>x</message></error></item></unsuccessful></DeleteVpcEndpointServiceConfigurationsResponse>`
}

func TestLostAnswers(t *testing.T) {
	w := newWorldWith(t, "lost", func(e *awsemulator.Emulator) {
		for _, action := range []string{"CreateVpcEndpointServiceConfiguration", "ModifyVpcEndpointServicePermissions", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "CreateVpcEndpoint"} {
			e.Fail(awsemulator.Fault{Service: "ec2", Action: action, Times: 1, Lost: true})
		}
		e.Fail(awsemulator.Fault{Service: "route53", Action: "ChangeResourceRecordSets", Times: 1, Lost: true})
	})
	t.Run("When the answer to every change is lost once there should be one of everything in the end", func(t *testing.T) {
		g := NewWithT(t)
		w.connected("kube-apiserver-private")
		w.connected("private-router")
		g.Expect(w.services()).To(HaveLen(2))
		groups, err := w.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{})
		g.Expect(err).NotTo(HaveOccurred())
		n := 0
		for _, group := range groups.SecurityGroups {
			if sdk.ToString(group.Description) == "VPC endpoint security group" {
				n++
			}
		}
		g.Expect(n).To(Equal(2))
	})
}
