package workers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"time"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/tags"
	"hcp.internal/platform/internal/kube/conditions"
)

// region is an account with one VPC. It fails the call of a name with a code, when asked to.
type region struct {
	group *types.SecurityGroup
	fail  map[string]string
	calls []string
	ids   int
}

func (r *region) call(name string, mutates bool) error {
	if mutates {
		r.calls = append(r.calls, name)
	}
	if code := r.fail[name]; code != "" {
		return &smithy.GenericAPIError{Code: code, Message: "the text of " + code}
	}
	return nil
}

func (r *region) Renew() {}

func (r *region) DescribeVpcEndpoints(context.Context, *ec2.DescribeVpcEndpointsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcEndpointsOutput, error) {
	return &ec2.DescribeVpcEndpointsOutput{}, r.call("DescribeVpcEndpoints", false)
}

func (r *region) DescribeVpcs(_ context.Context, in *ec2.DescribeVpcsInput, _ ...func(*ec2.Options)) (*ec2.DescribeVpcsOutput, error) {
	out := &ec2.DescribeVpcsOutput{}
	if in.VpcIds[0] == "vpc-1" {
		out.Vpcs = []types.Vpc{{VpcId: aws.String("vpc-1")}}
	}
	return out, r.call("DescribeVpcs", false)
}

func (r *region) DescribeSecurityGroups(_ context.Context, in *ec2.DescribeSecurityGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	if err := r.call("DescribeSecurityGroups", false); err != nil {
		return nil, err
	}
	out := &ec2.DescribeSecurityGroupsOutput{}
	if r.group == nil {
		return out, nil
	}
	for _, f := range in.Filters {
		if v, ok := ec2values.Set(r.group.Tags)[(*f.Name)[len("tag:"):]]; !ok || v != f.Values[0] {
			return out, nil
		}
	}
	out.SecurityGroups = []types.SecurityGroup{*r.group}
	return out, nil
}

func (r *region) CreateSecurityGroup(_ context.Context, in *ec2.CreateSecurityGroupInput, _ ...func(*ec2.Options)) (*ec2.CreateSecurityGroupOutput, error) {
	if err := r.call("CreateSecurityGroup", true); err != nil {
		return nil, err
	}
	r.ids++
	r.group = &types.SecurityGroup{GroupId: aws.String(fmt.Sprintf("sg-%d", r.ids)), OwnerId: aws.String("123456789012"), GroupName: in.GroupName, Tags: in.TagSpecifications[0].Tags,
		IpPermissionsEgress: []types.IpPermission{{IpProtocol: aws.String("-1")}}}
	return &ec2.CreateSecurityGroupOutput{GroupId: r.group.GroupId}, nil
}

func (r *region) DeleteSecurityGroup(context.Context, *ec2.DeleteSecurityGroupInput, ...func(*ec2.Options)) (*ec2.DeleteSecurityGroupOutput, error) {
	if err := r.call("DeleteSecurityGroup", true); err != nil {
		return nil, err
	}
	r.group = nil
	return &ec2.DeleteSecurityGroupOutput{}, nil
}

func (r *region) AuthorizeSecurityGroupIngress(_ context.Context, in *ec2.AuthorizeSecurityGroupIngressInput, _ ...func(*ec2.Options)) (*ec2.AuthorizeSecurityGroupIngressOutput, error) {
	if err := r.call("AuthorizeSecurityGroupIngress", true); err != nil {
		return nil, err
	}
	r.group.IpPermissions = append(r.group.IpPermissions, in.IpPermissions...)
	return &ec2.AuthorizeSecurityGroupIngressOutput{}, nil
}

func (r *region) RevokeSecurityGroupIngress(context.Context, *ec2.RevokeSecurityGroupIngressInput, ...func(*ec2.Options)) (*ec2.RevokeSecurityGroupIngressOutput, error) {
	r.group.IpPermissions = nil
	return &ec2.RevokeSecurityGroupIngressOutput{}, r.call("RevokeSecurityGroupIngress", true)
}

func (r *region) RevokeSecurityGroupEgress(context.Context, *ec2.RevokeSecurityGroupEgressInput, ...func(*ec2.Options)) (*ec2.RevokeSecurityGroupEgressOutput, error) {
	r.group.IpPermissionsEgress = nil
	return &ec2.RevokeSecurityGroupEgressOutput{}, r.call("RevokeSecurityGroupEgress", true)
}

func (r *region) CreateTags(_ context.Context, in *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	if err := r.call("CreateTags", true); err != nil {
		return nil, err
	}
	r.group.Tags = ec2values.Tags(ec2values.Set(append(r.group.Tags, in.Tags...)))
	return &ec2.CreateTagsOutput{}, nil
}

func (r *region) DeleteTags(_ context.Context, in *ec2.DeleteTagsInput, _ ...func(*ec2.Options)) (*ec2.DeleteTagsOutput, error) {
	set := ec2values.Set(r.group.Tags)
	for _, t := range in.Tags {
		delete(set, *t.Key)
	}
	r.group.Tags = ec2values.Tags(set)
	return &ec2.DeleteTagsOutput{}, r.call("DeleteTags", true)
}

// world is a management cluster with one HostedControlPlane.
type world struct {
	c   client.Client
	r   *Reconciler
	aws *region
	key client.ObjectKey
}

func newWorld(t *testing.T) *world {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	hcp.Spec.InfraID = "demo-abcde"
	hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{
		Region: "eu-west-1", CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: "vpc-1"},
		ResourceTags: []hyperv1.AWSClusterResourceTag{{AWSResourceTag: hyperv1.AWSResourceTag{Key: "team", Value: "a"}}},
	}}
	hcp.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: "10.0.0.0/16"}}
	hcp.Status.Conditions = []metav1.Condition{conditions.True(hyperv1.KubeAPIServerAvailable, "AsExpected", "")}
	w := &world{aws: &region{fail: map[string]string{}}, key: client.ObjectKeyFromObject(hcp)}
	w.c = fake.NewClientBuilder().WithScheme(scheme).WithObjects(hcp).WithStatusSubresource(hcp).Build()
	w.r = &Reconciler{Client: w.c, Clock: clocktesting.NewFakePassiveClock(time.Now()), NewAPI: func(context.Context, string) (API, error) { return w.aws, nil }}
	return w
}

// settle makes passes until one asks for no early repetition, and returns the HostedControlPlane.
func (w *world) settle(t *testing.T) *hyperv1.HostedControlPlane {
	g := NewWithT(t)
	for range 4 {
		_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: w.key})
		g.Expect(err).NotTo(HaveOccurred())
	}
	hcp := &hyperv1.HostedControlPlane{}
	g.Expect(w.c.Get(t.Context(), w.key, hcp)).To(Succeed())
	return hcp
}

func (w *world) change(t *testing.T, change func(*hyperv1.HostedControlPlane)) {
	g := NewWithT(t)
	hcp := &hyperv1.HostedControlPlane{}
	g.Expect(w.c.Get(t.Context(), w.key, hcp)).To(Succeed())
	change(hcp)
	g.Expect(w.c.Update(t.Context(), hcp)).To(Succeed())
}

func TestGroup(t *testing.T) {
	const created = hyperv1.AWSDefaultSecurityGroupCreated
	t.Run("When AWS takes the tokens it should make the group once, with all rules and tags", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		hcp := w.settle(t)
		g.Expect(conditions.IsTrue(hcp.Status.Conditions, created)).To(BeTrue())
		g.Expect(conditions.IsTrue(hcp.Status.Conditions, hyperv1.ValidAWSIdentityProvider)).To(BeTrue())
		g.Expect(hcp.Status.Platform.AWS.DefaultWorkerSecurityGroupID).To(Equal("sg-1"))
		g.Expect(w.aws.calls).To(Equal([]string{"CreateSecurityGroup", "AuthorizeSecurityGroupIngress"}))
		g.Expect(w.aws.group.IpPermissions).To(HaveLen(12))
		g.Expect(ec2values.Set(w.aws.group.Tags)).To(Equal(tags.Set{"team": "a", "kubernetes.io/cluster/demo-abcde": "owned", "Name": "demo-abcde-default-sg"}))
	})
	t.Run("When it is interrupted after each call it should end with one group", func(t *testing.T) {
		for _, call := range []string{"DescribeVpcs", "DescribeSecurityGroups", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress"} {
			g := NewWithT(t)
			w := newWorld(t)
			w.aws.fail[call] = "UnauthorizedOperation"
			hcp := w.settle(t)
			c := conditions.Get(hcp.Status.Conditions, created)
			g.Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "AWSError"), HaveField("Message", ContainSubstring("code: UnauthorizedOperation"))), call)
			g.Expect(c.Message).NotTo(ContainSubstring("the text of"), "texts hold what changes each time")
			delete(w.aws.fail, call)
			hcp = w.settle(t)
			g.Expect(conditions.IsTrue(hcp.Status.Conditions, created)).To(BeTrue(), call)
			g.Expect(w.aws.ids).To(Equal(1))
			g.Expect(w.aws.group.IpPermissions).To(HaveLen(12))
		}
	})
	t.Run("When AWS does not take the tokens it should make nothing", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.aws.fail["DescribeVpcEndpoints"] = "InvalidIdentityToken"
		hcp := w.settle(t)
		g.Expect(conditions.Get(hcp.Status.Conditions, hyperv1.ValidAWSIdentityProvider)).To(And(HaveField("Reason", "InvalidIdentityProvider"), HaveField("Message", "InvalidIdentityToken")))
		g.Expect(w.aws.calls).To(BeEmpty())
		g.Expect(conditions.Get(hcp.Status.Conditions, created)).To(BeNil())
	})
	t.Run("When the spec lacks what the group needs it should name the field", func(t *testing.T) {
		for field, change := range map[string]func(*hyperv1.HostedControlPlane){
			"spec.platform.aws.cloudProviderConfig.vpc": func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.AWS.CloudProviderConfig = nil },
			"spec.networking.machineNetwork":            func(h *hyperv1.HostedControlPlane) { h.Spec.Networking.MachineNetwork = nil },
			"VPC vpc-2 does not exist":                  func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.AWS.CloudProviderConfig.VPC = "vpc-2" },
		} {
			w := newWorld(t)
			w.change(t, change)
			NewWithT(t).Expect(conditions.Get(w.settle(t).Status.Conditions, created)).To(HaveField("Message", ContainSubstring(field)))
		}
	})
	t.Run("When tags of the cluster change it should change them, and leave those of others", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.settle(t)
		w.aws.group.Tags = append(w.aws.group.Tags, types.Tag{Key: aws.String("foreign"), Value: aws.String("x")})
		w.change(t, func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.AWS.ResourceTags[0].Key = "group" })
		w.settle(t)
		g.Expect(ec2values.Set(w.aws.group.Tags)).To(And(HaveKey("group"), HaveKey("foreign"), Not(HaveKey("team"))))
		calls := len(w.aws.calls)
		w.settle(t)
		g.Expect(w.aws.calls).To(HaveLen(calls), "nothing is done twice")
	})
	t.Run("When tagging is forbidden the cluster should go on", func(t *testing.T) {
		w := newWorld(t)
		w.settle(t)
		w.aws.fail["CreateTags"] = "UnauthorizedOperation"
		w.change(t, func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.AWS.ResourceTags[0].Value = "b" })
		NewWithT(t).Expect(conditions.IsTrue(w.settle(t).Status.Conditions, created)).To(BeTrue())
	})
}

func TestRemove(t *testing.T) {
	const deleted = hyperv1.AWSDefaultSecurityGroupDeleted
	for name, tc := range map[string]struct {
		release string // 4.22.0 unless told
		asked   bool
		fail    map[string]string
		trusted metav1.ConditionStatus
		inside  metav1.ConditionStatus
		gone    bool
		want    metav1.ConditionStatus
		says    string
	}{
		"When nobody asks for it the group should stay":                          {inside: metav1.ConditionTrue},
		"When it is asked for the group should go":                               {asked: true, inside: metav1.ConditionTrue, gone: true, want: metav1.ConditionTrue},
		"When the hosted cluster still has load balancers the group should stay": {asked: true, inside: metav1.ConditionFalse},
		"When the release is one of Kubernetes the group should go at once":      {release: "1.36.3", asked: true, gone: true, want: metav1.ConditionTrue},
		"When AWS does not take the tokens it should not be tried":               {asked: true, inside: metav1.ConditionTrue, trusted: metav1.ConditionFalse, fail: map[string]string{"DescribeVpcEndpoints": "AccessDenied"}},
		"When something depends on it that should be told":                       {asked: true, inside: metav1.ConditionTrue, fail: map[string]string{"DeleteSecurityGroup": "DependencyViolation"}, want: metav1.ConditionFalse, says: "the text of DependencyViolation"},
		"When it may not be deleted the deletion should go on":                   {asked: true, inside: metav1.ConditionTrue, fail: map[string]string{"DeleteSecurityGroup": "UnauthorizedOperation"}, want: metav1.ConditionFalse, says: "code: UnauthorizedOperation"},
		"When AWS is asked too often it should be tried again":                   {asked: true, inside: metav1.ConditionTrue, fail: map[string]string{"DeleteSecurityGroup": "RequestLimitExceeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			w.settle(t)
			w.change(t, func(h *hyperv1.HostedControlPlane) {
				h.Finalizers = []string{"example.com/somebody"}
				if tc.asked {
					metav1.SetMetaDataAnnotation(&h.ObjectMeta, hyperv1.CleanupCloudResourcesAnnotation, "true")
				}
			})
			hcp := &hyperv1.HostedControlPlane{}
			g.Expect(w.c.Get(t.Context(), w.key, hcp)).To(Succeed())
			for what, status := range map[string]metav1.ConditionStatus{hyperv1.ValidAWSIdentityProvider: tc.trusted, hyperv1.CloudResourcesDestroyed: tc.inside} {
				if status != "" {
					conditions.Set(&hcp.Status.Conditions, time.Now(), conditions.New(what, status, "x", ""))
				}
			}
			hcp.Status.ControlPlaneVersion.Desired.Version = cmp.Or(tc.release, "4.22.0")
			g.Expect(w.c.Status().Update(t.Context(), hcp)).To(Succeed())
			g.Expect(w.c.Delete(t.Context(), hcp)).To(Succeed())
			w.aws.fail = tc.fail
			hcp = w.settle(t)
			g.Expect(w.aws.group == nil).To(Equal(tc.gone))
			c := conditions.Get(hcp.Status.Conditions, deleted)
			if tc.want == "" {
				g.Expect(c).To(BeNil())
				return
			}
			g.Expect(c).To(And(HaveField("Status", tc.want), HaveField("Message", ContainSubstring(tc.says))))
			calls := slices.Clone(w.aws.calls)
			w.settle(t)
			g.Expect(w.aws.calls).To(Equal(calls), "what was decided is not tried again")
		})
	}
}

func TestIdentity(t *testing.T) {
	for code, want := range map[string]string{
		"": "True/AsExpected", "InvalidIdentityToken": "False/InvalidIdentityProvider", "AccessDenied": "False/InvalidIdentityProvider",
		"IDPCommunicationError": "Unknown/AWSError", "ExpiredToken": "Unknown/AWSError", "UnauthorizedOperation": "Unknown/AWSError",
	} {
		t.Run("When AWS answers "+code+" it should say what that means", func(t *testing.T) {
			c := identityCondition((&region{fail: map[string]string{"x": code}}).call("x", false))
			NewWithT(t).Expect(string(c.Status) + "/" + c.Reason).To(Equal(want))
		})
	}
	t.Run("When the API server is away it should not ask", func(t *testing.T) {
		w := newWorld(t)
		w.change(t, func(h *hyperv1.HostedControlPlane) {})
		hcp := &hyperv1.HostedControlPlane{}
		NewWithT(t).Expect(w.r.identity(t.Context(), hcp).Message).To(ContainSubstring("KubeAPIServer is not available"))
	})
}
