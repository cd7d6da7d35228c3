//go:build aws

package awsprivate

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform/aws/cloud"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/test/awsemulator"
)

const (
	region = "eu-central-1"
	// patience is for several programs on a machine that is busy with other tests; often is often enough.
	patience, often = "240s", "250ms"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// world is a private hosted cluster: its objects on a management cluster, its network and load balancers in an emulated AWS, and both operators' programs.
type world struct {
	*testing.T
	aws     *awsemulator.Emulator
	ec2     *ec2.Client
	elb     *elb.Client
	route53 *route53.Client
	c       client.Client
	hc      *hyperv1.HostedCluster
	hcp     *hyperv1.HostedControlPlane
	network *infra.Output
}

func newWorld(t *testing.T, name string) *world { return newWorldWith(t, name, nil) }

// newWorldWith calls prepare before the programs start.
func newWorldWith(t *testing.T, name string, prepare func(*awsemulator.Emulator)) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{T: t, aws: awsemulator.Start(t)}
	w.aws.Use(t)
	ctx := t.Context()
	cfg, err := session.Load(ctx, session.Options{Agent: "test", Region: region})
	g.Expect(err).NotTo(HaveOccurred())
	w.ec2, w.elb, w.route53 = ec2.NewFromConfig(cfg), elb.NewFromConfig(cfg), session.Route53(cfg)
	_, err = w.route53.CreateHostedZone(ctx, &route53.CreateHostedZoneInput{Name: sdk.String("example.com"), CallerReference: sdk.String("1")})
	g.Expect(err).NotTo(HaveOccurred())
	wait := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	w.network, err = infra.Create(ctx, infra.Options{InfraID: name, Name: name, BaseDomain: "example.com", Region: region, Zones: []string{region + "a", region + "b"}, VPCCIDR: "10.0.0.0/16"},
		infra.Accounts{Cluster: infra.NewAccount(cfg)}, infra.Surroundings{Log: t.Logf, Wait: wait})
	g.Expect(err).NotTo(HaveOccurred())
	w.connect()
	w.makeObjects(name)
	for _, service := range []string{"kube-apiserver-private", "private-router"} {
		w.makeBalancer(service, name+"-"+service[:7])
	}
	w.aws.Forget()
	if prepare != nil {
		prepare(w.aws)
	}
	w.run()
	return w
}

func (w *world) connect() {
	g := NewWithT(w.T)
	env := testenv.Start(w.T)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	w.c = env.Client(w.T, scheme)
}

func arn(role string) string { return "arn:aws:iam::123456789012:role/" + role }

func (w *world) makeObjects(name string) {
	g := NewWithT(w.T)
	ctx := w.Context()
	w.hc = testenv.HostedCluster(testenv.Start(w.T).Namespace(w.T), name)
	w.hc.Spec.InfraID = name
	w.hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{
		Region: region, EndpointAccess: hyperv1.PublicAndPrivate, CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: w.network.VPCID},
		RolesRef: hyperv1.AWSRolesRef{
			IngressARN: arn("a"), ImageRegistryARN: arn("b"), StorageARN: arn("c"), NetworkARN: arn("d"), KubeCloudControllerARN: arn("e"), NodePoolManagementARN: arn("f"),
			ControlPlaneOperatorARN: arn("path/control-plane-operator"),
		},
		ResourceTags: []hyperv1.AWSClusterResourceTag{{AWSResourceTag: hyperv1.AWSResourceTag{Key: "kubernetes.io/cluster/" + name, Value: "owned"}}},
	}}
	w.hc.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
	w.hc.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: "10.0.0.0/16"}}
	g.Expect(w.c.Create(ctx, w.hc)).To(Succeed())
	ns := names.NamespaceOf(w.hc)
	g.Expect(w.c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
	spec := w.hc.Spec
	w.hcp = &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(w.hc)}},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "registry.invalid/release:1", PullSecret: spec.PullSecret, Platform: spec.Platform, Networking: spec.Networking, Services: spec.Services,
			IssuerURL: spec.IssuerURL, InfraID: spec.InfraID, ControllerAvailabilityPolicy: hyperv1.SingleReplica,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}},
	}
	g.Expect(w.c.Create(ctx, w.hcp)).To(Succeed())
	w.makePool(w.network.Zones[0].SubnetID)
}

func (w *world) makePool(subnet string) {
	np := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: w.hc.Namespace, Name: "pool-" + subnet}}
	np.Spec.ClusterName, np.Spec.Release, np.Spec.Management.UpgradeType = w.hc.Name, w.hc.Spec.Release, hyperv1.UpgradeTypeReplace
	np.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSNodePoolPlatform{InstanceType: "m5.large", Subnet: hyperv1.AWSResourceReference{ID: ptr.To(subnet)}}}
	NewWithT(w.T).Expect(w.c.Create(w.Context(), np)).To(Succeed())
}

// makeBalancer is what a management cluster's cloud provider does about a Service: a load balancer, and its name in the status.
func (w *world) makeBalancer(service, name string) {
	g := NewWithT(w.T)
	ctx := w.Context()
	_, err := w.elb.CreateLoadBalancer(ctx, &elb.CreateLoadBalancerInput{Name: &name, Type: elbtypes.LoadBalancerTypeEnumNetwork, Scheme: elbtypes.LoadBalancerSchemeEnumInternal,
		Subnets: []string{w.network.Zones[0].SubnetID}})
	g.Expect(err).NotTo(HaveOccurred())
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: service},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 443}}}}
	g.Expect(w.c.Create(ctx, svc)).To(Succeed())
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: name + "-0123456789abcdef.elb." + region + ".amazonaws.com"}}
	g.Expect(w.c.Status().Update(ctx, svc)).To(Succeed())
}

// run starts what hcp-cloud does beside both operators.
func (w *world) run() {
	env := testenv.Start(w.T)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- cloud.RunControlPlane(ctx, env.Config, w.hcp.Namespace) }()
	go func() { ended <- cloud.RunManagement(ctx, env.Config, cloud.ManagementOptions{PrivateLink: region}) }()
	w.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				w.Errorf("a program of hcp-cloud ended with %v", err)
			}
		}
	})
}

// get reads an AWSEndpointService.
func (w *world) get(g Gomega, name string) *hyperv1.AWSEndpointService {
	obj := &hyperv1.AWSEndpointService{}
	g.Expect(w.c.Get(w.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, obj)).To(Succeed())
	return obj
}

// connected waits until one is, as AWS has it.
func (w *world) connected(name string) *hyperv1.AWSEndpointService {
	w.Helper()
	var obj *hyperv1.AWSEndpointService
	NewWithT(w.T).Eventually(func(g Gomega) {
		obj = w.get(g, name)
		for _, t := range []string{hyperv1.AWSEndpointServiceAvailable, hyperv1.AWSEndpointAvailable} {
			g.Expect(conditions.IsTrue(obj.Status.Conditions, t)).To(BeTrue(), "%s: %+v", t, obj.Status)
		}
		endpoint := w.endpoint(g, obj)
		g.Expect(sdk.ToString(endpoint.ServiceName)).To(Equal(obj.Status.EndpointServiceName))
		g.Expect(endpoint.SubnetIds).NotTo(BeEmpty())
		g.Expect(endpoint.Groups).To(ConsistOf(HaveField("GroupId", HaveValue(Equal(obj.Status.SecurityGroupID)))))
		for _, host := range obj.Status.DNSNames {
			g.Expect(w.record(host)).To(Equal(sdk.ToString(endpoint.DnsEntries[0].DnsName)), host)
		}
	}, patience, often).Should(Succeed())
	return obj
}

// endpoint is the only one that there is of an AWSEndpointService.
func (w *world) endpoint(g Gomega, obj *hyperv1.AWSEndpointService) types.VpcEndpoint {
	list := w.endpoints(obj.Name)
	g.Expect(list).To(HaveLen(1))
	g.Expect(sdk.ToString(list[0].VpcEndpointId)).To(Equal(obj.Status.EndpointID))
	return list[0]
}

func (w *world) endpoints(name string) (list []types.VpcEndpoint) {
	out, err := w.ec2.DescribeVpcEndpoints(w.Context(), &ec2.DescribeVpcEndpointsInput{Filters: []types.Filter{{Name: sdk.String("tag:AWSEndpointService"), Values: []string{name}}}})
	NewWithT(w.T).Expect(err).NotTo(HaveOccurred())
	for _, e := range out.VpcEndpoints {
		if !strings.EqualFold(string(e.State), "deleted") {
			list = append(list, e)
		}
	}
	return list
}

func (w *world) services() []types.ServiceConfiguration {
	out, err := w.ec2.DescribeVpcEndpointServiceConfigurations(w.Context(), &ec2.DescribeVpcEndpointServiceConfigurationsInput{})
	NewWithT(w.T).Expect(err).NotTo(HaveOccurred())
	return out.ServiceConfigurations
}

// record is where a name of the private zone leads, empty when it doesn't exist.
func (w *world) record(name string) string {
	out, err := w.route53.ListResourceRecordSets(w.Context(), &route53.ListResourceRecordSetsInput{HostedZoneId: &w.network.LocalZoneID})
	NewWithT(w.T).Expect(err).NotTo(HaveOccurred())
	for _, set := range out.ResourceRecordSets {
		if strings.TrimSuffix(strings.ReplaceAll(sdk.ToString(set.Name), `\052`, "*"), ".") == name && len(set.ResourceRecords) > 0 {
			return sdk.ToString(set.ResourceRecords[0].Value)
		}
	}
	return ""
}

func (w *world) principals(service string) (list []string) {
	id := service[strings.LastIndex(service, ".")+1:]
	out, err := w.ec2.DescribeVpcEndpointServicePermissions(w.Context(), &ec2.DescribeVpcEndpointServicePermissionsInput{ServiceId: &id})
	NewWithT(w.T).Expect(err).NotTo(HaveOccurred())
	for _, p := range out.AllowedPrincipals {
		list = append(list, sdk.ToString(p.Principal))
	}
	return list
}

// nudge has both programs look again, which they do by themselves after five minutes.
func (w *world) nudge(principal string) {
	g := NewWithT(w.T)
	g.Eventually(func() error {
		if err := w.c.Get(w.Context(), client.ObjectKeyFromObject(w.hc), w.hc); err != nil {
			return err
		}
		w.hc.Spec.Platform.AWS.AdditionalAllowedPrincipals = []string{principal}
		return w.c.Update(w.Context(), w.hc)
	}, patience, often).Should(Succeed())
	g.Eventually(func() error {
		if err := w.c.Get(w.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp); err != nil {
			return err
		}
		w.hcp.Spec.Platform.AWS.AdditionalAllowedPrincipals = []string{principal}
		return w.c.Update(w.Context(), w.hcp)
	}, patience, often).Should(Succeed())
}
