package privatelink

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/fault"
)

func TestLoadBalancerName(t *testing.T) {
	for host, want := range map[string]string{
		"a1b2-0123456789abcdef.elb.eu-west-1.amazonaws.com":       "a1b2",
		"with-some-dashes-0123456789.elb.eu-west-1.amazonaws.com": "with-some-dashes",
		"a1b2-0123456789.elb.cn-north-1.amazonaws.com.cn":         "a1b2",
		"nodash.elb.eu-west-1.amazonaws.com":                      "",
		"ends-.elb.eu-west-1.amazonaws.com":                       "",
		"a1b2-0123.elb.example.com":                               "",
		"a1b2-0123.eu-west-1.elb.amazonaws.com":                   "", // a classic one
		"192.0.2.1":                                               "",
		"":                                                        "",
	} {
		t.Run("When the host is "+host+" it should find the name or none", func(t *testing.T) {
			NewWithT(t).Expect(loadBalancerName(host)).To(Equal(want))
		})
	}
}

func TestServiceID(t *testing.T) {
	for name, want := range map[string]string{
		"com.amazonaws.vpce.eu-west-1.vpce-svc-0123": "vpce-svc-0123", "": "", "vpce-svc-0123": "", "com.amazonaws.eu-west-1.s3": "",
	} {
		t.Run("When the name is "+name+" it should find the ID or none", func(t *testing.T) { NewWithT(t).Expect(serviceID(name)).To(Equal(want)) })
	}
}

func TestPrincipals(t *testing.T) {
	t.Run("When the role has a path it should be left out, as AWS does", func(t *testing.T) {
		spec := &hyperv1.AWSPlatformSpec{AdditionalAllowedPrincipals: []string{"arn:aws:iam::2:role/a/b", "arn:aws:iam::2:root"}}
		spec.RolesRef.ControlPlaneOperatorARN = "arn:aws-us-gov:iam::1:role/some/path/cpo"
		NewWithT(t).Expect(principals(spec)).To(Equal([]string{"arn:aws-us-gov:iam::1:role/cpo", "arn:aws:iam::2:role/a/b", "arn:aws:iam::2:root"}))
	})
	t.Run("When somebody is named twice it should be one", func(t *testing.T) {
		spec := &hyperv1.AWSPlatformSpec{AdditionalAllowedPrincipals: []string{"arn:aws:iam::1:role/cpo"}}
		spec.RolesRef.ControlPlaneOperatorARN = "arn:aws:iam::1:role/cpo"
		NewWithT(t).Expect(principals(spec)).To(HaveLen(1))
	})
	t.Run("When they change it should add and remove the difference", func(t *testing.T) {
		add, remove := difference([]string{"a", "b"}, []string{"b", "c"})
		NewWithT(t).Expect(append(add, remove...)).To(Equal([]string{"c", "a"}))
	})
}

func pool(name, cluster, subnet string) hyperv1.NodePool {
	np := hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}}
	np.Spec.ClusterName = cluster
	np.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSNodePoolPlatform{}}
	if subnet != "" {
		np.Spec.Platform.AWS.Subnet.ID = aws.String(subnet)
	}
	return np
}

func TestSubnets(t *testing.T) {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	t.Run("When pools name subnets it should take those of the cluster's own, once and sorted, and Karpenter's", func(t *testing.T) {
		g := NewWithT(t)
		going := pool("going", "demo", "subnet-9")
		going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		list, err := subnetsOf([]hyperv1.NodePool{pool("b", "demo", "subnet-2"), pool("a", "demo", "subnet-1"), pool("c", "demo", "subnet-2"), pool("d", "other", "subnet-3"),
			pool("e", "demo", ""), going}, hc, `["subnet-0"]`)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(Equal([]string{"subnet-0", "subnet-1", "subnet-2"}))
	})
	t.Run("When Karpenter's list can't be read it should count for nothing", func(t *testing.T) {
		list, err := subnetsOf([]hyperv1.NodePool{pool("a", "demo", "subnet-1")}, hc, `{`)
		NewWithT(t).Expect(list, err).To(Equal([]string{"subnet-1"}))
	})
	t.Run("When there are more than fit it should take the first and say so", func(t *testing.T) {
		var pools []hyperv1.NodePool
		for _, c := range "abcdefghijkl" {
			pools = append(pools, pool("p"+string(c), "demo", "subnet-"+string(c)))
		}
		list, err := subnetsOf(pools, hc, "")
		g := NewWithT(t)
		g.Expect(list).To(HaveLen(maxSubnets))
		g.Expect(err).To(MatchError(ContainSubstring("12 subnets")))
	})
	t.Run("When two are in one zone it should take the first of them", func(t *testing.T) {
		s := func(id, zone string) types.Subnet {
			return types.Subnet{SubnetId: aws.String(id), AvailabilityZone: aws.String(zone)}
		}
		NewWithT(t).Expect(apart([]types.Subnet{s("subnet-3", "a"), s("subnet-2", "b"), s("subnet-1", "a")})).To(Equal([]string{"subnet-1", "subnet-2"}))
	})
}

func controlPlane(publish hyperv1.ServicePublishingStrategy) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	hcp.Spec.InfraID = "demo-abcde"
	hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{EndpointAccess: hyperv1.Private}}
	hcp.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{
		{Service: hyperv1.APIServer, ServicePublishingStrategy: publish},
		{Service: hyperv1.OAuthServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "oauth.example.com"}}},
	}
	hcp.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: "10.1.0.0/16"}, {CIDR: "10.0.0.0/16"}, {CIDR: "fd00::/48"}}
	return hcp
}

var (
	byBalancer = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
	byRoute    = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "api.example.com"}}
)

func TestNames(t *testing.T) {
	t.Run("When the API has a load balancer its endpoint should have the name api, and the router's *.apps", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(records(controlPlane(byBalancer), "kube-apiserver-private")).To(Equal([]string{"api.demo.hypershift.local."}))
		g.Expect(records(controlPlane(byBalancer), "private-router")).To(Equal([]string{"*.apps.demo.hypershift.local."}))
	})
	t.Run("When the API has a Route both names should lead to the router", func(t *testing.T) {
		NewWithT(t).Expect(records(controlPlane(byRoute), "private-router")).To(Equal([]string{"*.apps.demo.hypershift.local.", "api.demo.hypershift.local."}))
	})
}

func TestIngress(t *testing.T) {
	t.Run("When the group is new it should let every network of machines in, at one port", func(t *testing.T) {
		g := NewWithT(t)
		rules := ingress(controlPlane(byBalancer), "kube-apiserver-private", nil)
		g.Expect(rules).To(HaveLen(3))
		for _, r := range rules {
			g.Expect(*r.FromPort).To(Equal(int32(6443)))
		}
		g.Expect(*rules[0].IpRanges[0].CidrIp).To(Equal("10.0.0.0/16"))
		g.Expect(*rules[2].Ipv6Ranges[0].CidrIpv6).To(Equal("fd00::/48"))
	})
	t.Run("When rules are there it should add those that are missing", func(t *testing.T) {
		g := NewWithT(t)
		// AWS joins rules of the same ports.
		joined := types.IpPermission{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(443), ToPort: aws.Int32(443), IpRanges: []types.IpRange{{CidrIp: aws.String("10.0.0.0/16")}, {CidrIp: aws.String("10.1.0.0/16")}}}
		g.Expect(ingress(controlPlane(byBalancer), "private-router", []types.IpPermission{joined})).To(HaveLen(1))
		g.Expect(ingress(controlPlane(byBalancer), "kube-apiserver-private", []types.IpPermission{joined})).To(HaveLen(3), "another port")
	})
}

func TestDisconnect(t *testing.T) {
	for s, want := range map[string]string{
		"PendingAcceptance": "reject", "pending": "reject", "Available": "reject", "deleted": "", "failed": "", "Expired": "",
		"deleting": "wait", "rejected": "wait", "partial": "wait", "news": "wait",
	} {
		t.Run("When a connection is "+s+" it should be known what to do", func(t *testing.T) {
			reject, ending := disconnect([]types.VpcEndpointConnection{{VpcEndpointId: aws.String("vpce-1"), VpcEndpointState: types.State(s)}})
			g := NewWithT(t)
			g.Expect(reject != nil).To(Equal(want == "reject"))
			g.Expect(ending).To(Equal(want == "wait"))
		})
	}
}

func TestPatience(t *testing.T) {
	g := NewWithT(t)
	var p patience
	key := client.ObjectKey{Name: "x"}
	failed := errors.New("no")
	var last time.Duration
	for range 4 {
		pause := p.after(key, failed)
		g.Expect(pause).To(And(BeNumerically(">=", last), BeNumerically("<=", lastRetry+10*time.Second)))
		last = pause - 10*time.Second
	}
	g.Expect(p.after(key, nil)).To(BeNumerically(">=", lookAgain))
	g.Expect(p.after(key, failed)).To(BeNumerically("<=", firstRetry+10*time.Second), "a success begins anew")
	g.Expect(p.after(key, fault.Told("x", &smithy.GenericAPIError{Code: "RequestLimitExceeded"}))).To(BeNumerically(">=", throttled))
}

func TestAccount(t *testing.T) {
	hcp := controlPlane(byBalancer)
	hcp.Spec.Platform.AWS.Region = "eu-west-1"
	t.Run("When the VPC is the cluster's own nobody's role should be taken on", func(t *testing.T) {
		NewWithT(t).Expect(accountOf(hcp)).To(Equal(Account{Region: "eu-west-1"}))
	})
	t.Run("When the VPC is shared its owner's roles should be taken on, one for the VPC and one for the zone", func(t *testing.T) {
		shared := hcp.DeepCopy()
		shared.Spec.Platform.AWS.SharedVPC = &hyperv1.AWSSharedVPC{RolesRef: hyperv1.AWSSharedVPCRolesRef{ControlPlaneARN: "arn:vpc", IngressARN: "arn:zone"}, LocalZoneID: "Z3"}
		NewWithT(t).Expect(accountOf(shared)).To(Equal(Account{Region: "eu-west-1", VPCRole: "arn:vpc", ZoneRole: "arn:zone"}))
	})
}
