//go:build aws

package awsmachines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/aws/iam"
	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/capigroup/proxy"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/test/awsemulator"
)

const (
	region = "eu-central-1"
	// patience is for several programs on a machine that is busy with other tests; often is how often is looked.
	patience, often = "240s", "250ms"
	// size of the volumes of machines in GiB: more than that of any image of the emulator.
	size = 120
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// world is a hosted cluster's part of a management cluster and its network in an emulated AWS. client sees standard groups, wherever objects
// are stored.
type world struct {
	*testing.T
	aws      *awsemulator.Emulator
	config   sdk.Config
	ec2      *ec2.Client
	client   client.Client
	workload client.Client // of the hosted cluster, which is the same API server
	rest     *rest.Config
	ns       string
	hc       *hyperv1.HostedCluster
	pool     *hyperv1.NodePool
	profile  string
	subnet   string
	ami      string
}

// newWorld makes network, roles and security group as the CLI and the operators do.
func newWorld(t *testing.T, name string, private bool) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{T: t, aws: awsemulator.Start(t)}
	w.aws.Use(t)
	ctx := t.Context()
	var err error
	w.config, err = session.Load(ctx, session.Options{Agent: "test", Region: region})
	g.Expect(err).NotTo(HaveOccurred())
	w.ec2 = ec2.NewFromConfig(w.config)
	_, err = session.Route53(w.config).CreateHostedZone(ctx, &route53.CreateHostedZoneInput{Name: sdk.String("example.com"), CallerReference: sdk.String("1")})
	g.Expect(err).NotTo(HaveOccurred())
	wait := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	network, err := infra.Create(ctx, infra.Options{InfraID: name, Name: name, BaseDomain: "example.com", Region: region, Zones: []string{region + "a"}, VPCCIDR: "10.0.0.0/16"},
		infra.Accounts{Cluster: infra.NewAccount(w.config)}, infra.Surroundings{Log: t.Logf, Wait: wait})
	g.Expect(err).NotTo(HaveOccurred())
	roles, err := iam.Create(ctx, iam.Options{InfraID: name, Name: name, Region: region, PublicZoneID: network.PublicZoneID, PrivateZoneID: network.PrivateZoneID,
		LocalZoneID: network.LocalZoneID, BucketName: "docs", BucketRegion: region}, iam.NewAccount(w.config), nil, iam.Surroundings{Log: t.Logf, Wait: wait})
	g.Expect(err).NotTo(HaveOccurred())
	w.subnet, w.profile = network.Zones[0].SubnetID, roles.ProfileName
	w.makeHostedCluster(name, network.VPCID)
	w.connect(private)
	w.chooseImage()
	w.aws.Forget()
	return w
}

func (w *world) makeHostedCluster(name, vpc string) {
	g := NewWithT(w.T)
	group, err := w.ec2.CreateSecurityGroup(w.Context(), &ec2.CreateSecurityGroupInput{GroupName: sdk.String(name + "-default-sg"), Description: sdk.String("default worker security group"), VpcId: sdk.String(vpc)})
	g.Expect(err).NotTo(HaveOccurred())
	w.hc = &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}}
	w.hc.Spec.InfraID = name
	w.hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{
		Region: region, CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: vpc},
		ResourceTags: []hyperv1.AWSClusterResourceTag{
			{AWSResourceTag: hyperv1.AWSResourceTag{Key: "kubernetes.io/cluster/" + name, Value: "owned"}}, {AWSResourceTag: hyperv1.AWSResourceTag{Key: "team", Value: "blue"}}},
	}}
	w.hc.Status.Platform = &hyperv1.PlatformStatus{AWS: &hyperv1.AWSPlatformStatus{DefaultWorkerSecurityGroupID: sdk.ToString(group.GroupId)}}
	w.ns = names.NamespaceOf(w.hc)
}

// connect gives the world an API: the server itself, or the proxy before it that stores objects in HyperShift's groups.
func (w *world) connect(private bool) {
	g := NewWithT(w.T)
	env := testenv.Start(w.T)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	crds, err := config.ProviderCRDs("aws", private)
	g.Expect(err).NotTo(HaveOccurred())
	w.rest = rest.CopyConfig(env.Config)
	if private {
		env.InstallPrivateCAPI(w.T)
		conf, err := rest.TLSConfigFor(env.Config)
		g.Expect(err).NotTo(HaveOccurred())
		up, err := proxy.NewUpstream(proxy.UpstreamConfig{URL: env.Config.Host, TLS: conf})
		g.Expect(err).NotTo(HaveOccurred())
		front := httptest.NewServer(proxy.New(proxy.Config{Upstream: up}))
		w.Cleanup(func() {
			front.CloseClientConnections()
			front.Close()
		})
		w.rest = &rest.Config{Host: front.URL}
	}
	w.rest.QPS = -1
	env.Install(w.T, crds...)
	w.client, err = client.New(w.rest, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	w.workload = env.Client(w.T, scheme)
	// Instances of the next world have the same addresses, and so their nodes the same names.
	w.Cleanup(func() { _ = w.workload.DeleteAllOf(context.Background(), &corev1.Node{}) })
	g.Expect(w.workload.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})).To(Succeed())
}

// chooseImage takes any that has a root device, as the provider asks for its size.
func (w *world) chooseImage() {
	g := NewWithT(w.T)
	out, err := w.ec2.DescribeImages(w.Context(), &ec2.DescribeImagesInput{})
	g.Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(out.Images, func(image types.Image) bool {
		return sdk.ToString(image.RootDeviceName) != "" && image.Architecture == types.ArchitectureValuesX8664 && len(image.BlockDeviceMappings) > 0 &&
			image.BlockDeviceMappings[0].Ebs != nil && sdk.ToInt32(image.BlockDeviceMappings[0].Ebs.VolumeSize) <= size
	})
	g.Expect(i).To(BeNumerically(">=", 0), "the emulator has no image of a machine")
	w.ami = sdk.ToString(out.Images[i].ImageId)
}

// object is one of the provider's.
func (w *world) object(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: kind})
	u.SetNamespace(w.ns)
	u.SetName(name)
	return u
}

// makeCluster writes what the hypershift-operator does: the AWSCluster, of which it says that it is ready, and the Cluster.
func (w *world) makeCluster() {
	w.Helper()
	g := NewWithT(w.T)
	ctx := w.Context()
	p, err := platform.For(hyperv1.AWSPlatform)
	g.Expect(err).NotTo(HaveOccurred())
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	infrastructure, err := capi.Infrastructure(p, w.hc, hcp)
	g.Expect(err).NotTo(HaveOccurred())
	cluster := capi.Cluster(w.hc, infrastructure)
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{} // there is no HostedControlPlane here
	workload := clientcmdapi.NewConfig()
	admin := testenv.Start(w.T).Config
	workload.Clusters["c"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	workload.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData}
	workload.Contexts["x"], workload.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	kubeconfig, err := clientcmd.Write(*workload)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: cluster.Name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: cluster.Name}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig}})).To(Succeed())
	g.Expect(w.client.Create(ctx, infrastructure)).To(Succeed())
	g.Expect(w.client.Status().Patch(ctx, infrastructure, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"ready":true}}`)))).To(Succeed())
	g.Expect(w.client.Create(ctx, cluster)).To(Succeed())
	g.Expect(capi.MarkInitialized(ctx, w.client, cluster, time.Now())).To(Succeed())
}

// template is what the NodePool controller makes of the pool.
func (w *world) template() *machine.Template {
	w.Helper()
	p, err := platform.For(hyperv1.AWSPlatform)
	NewWithT(w.T).Expect(err).NotTo(HaveOccurred())
	t, err := p.MachineTemplate(machine.Input{HostedCluster: w.hc, NodePool: w.pool, Release: &release.Release{Version: "1.36.3", Kubernetes: true}})
	NewWithT(w.T).Expect(err).NotTo(HaveOccurred())
	return t
}

// makeTemplate creates it under a name.
func (w *world) makeTemplate(name string) {
	w.Helper()
	u, ok := w.template().Object.DeepCopyObject().(*unstructured.Unstructured)
	NewWithT(w.T).Expect(ok).To(BeTrue())
	u.SetNamespace(w.ns)
	u.SetName(name)
	NewWithT(w.T).Expect(w.client.Create(w.Context(), u)).To(Succeed())
}

func (w *world) poolOf(change func(*hyperv1.AWSNodePoolPlatform)) {
	aws := &hyperv1.AWSNodePoolPlatform{InstanceType: "m5.large", InstanceProfile: w.profile, AMI: w.ami, Subnet: hyperv1.AWSResourceReference{ID: ptr.To(w.subnet)},
		RootVolume: &hyperv1.Volume{Size: size}}
	if change != nil {
		change(aws)
	}
	w.pool = &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"}}
	w.pool.Spec.Arch = hyperv1.ArchitectureAMD64
	w.pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: aws}
}

// start runs a stock program until the test ends.
func (w *world) start(program, name string, environment map[string]string, args ...string) {
	w.Helper()
	g := NewWithT(w.T)
	path, err := filepath.Abs(filepath.Join("..", "..", program))
	g.Expect(err).NotTo(HaveOccurred())
	if _, err := os.Stat(path); err != nil {
		w.Fatalf("no %s at %s: run `make capi capa` first", name, path) // a skipped test would hide the gap
	}
	dir := w.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	conf := clientcmdapi.NewConfig()
	conf.Clusters["c"] = &clientcmdapi.Cluster{Server: w.rest.Host, CertificateAuthorityData: w.rest.CAData}
	conf.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: w.rest.CertData, ClientKeyData: w.rest.KeyData}
	conf.Contexts["x"], conf.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	g.Expect(errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600),
		clientcmd.WriteToFile(*conf, filepath.Join(dir, "kubeconfig")))).To(Succeed())
	ports, err := testenv.FreePorts(3)
	g.Expect(err).NotTo(HaveOccurred())
	var env []string
	for _, key := range slices.Sorted(maps.Keys(environment)) {
		env = append(env, key+"="+environment[key])
	}
	p, err := testenv.StartProcess(path, dir, name, env, append([]string{
		"--kubeconfig=" + filepath.Join(dir, "kubeconfig"), "--namespace=" + w.ns, "--webhook-cert-dir=" + dir, "--insecure-diagnostics",
		fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[0]), fmt.Sprintf("--webhook-port=%d", ports[1]), fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", ports[2]),
	}, args...)...)
	g.Expect(err).NotTo(HaveOccurred())
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("%s: %s", name, p.Tail())
		}
		p.Kill()
	})
}

// startManagers runs Cluster API and the provider, as they are.
func (w *world) startManagers() {
	w.Helper()
	w.start(builds.ClusterAPIManager, "capi-manager", nil, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
		"--feature-gates=MachinePool=false,ClusterTopology=false", "--v=2")
	environment := w.aws.Environment()
	environment["AWS_REGION"] = region
	w.start(builds.ProviderAWSManager, "capa-manager", environment, "--v=4", "--sync-period=10s",
		"--feature-gates=EKS=false,ROSA=false,MachinePool=false,AutoControllerIdentityCreator=false,ExternalResourceGC=false,TagUnmanagedNetworkResources=false")
}
