package create

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
)

// A pool of its own takes from the HostedCluster what flags don't say.
func TestPoolsFollowTheCluster(t *testing.T) {
	aws := hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{
		Subnet: &hyperv1.AWSResourceReference{ID: ptr.To("subnet-of-the-cluster")},
	}}}
	gcp := hyperv1.PlatformSpec{Type: hyperv1.GCPPlatform, GCP: &hyperv1.GCPPlatformSpec{Region: "us-central1",
		NetworkConfig: hyperv1.GCPNetworkConfig{PrivateServiceConnectSubnet: hyperv1.GCPResourceReference{Name: "psc"}}}}
	for name, tc := range map[string]struct {
		cluster hyperv1.PlatformSpec
		machine poolPlatform
		want    hyperv1.NodePoolPlatform
		fails   string
	}{
		"When AWS names a subnet it should take it and the cluster's profile": {
			cluster: aws, machine: &awsMachines{},
			want: hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSNodePoolPlatform{InstanceType: "m5.large", InstanceProfile: "demo-abc23-worker",
				Subnet: hyperv1.AWSResourceReference{ID: ptr.To("subnet-of-the-cluster")}, RootVolume: &hyperv1.Volume{}}},
		},
		"When flags name subnet and profile it should take those": {
			cluster: aws, machine: &awsMachines{subnetID: "subnet-1", profile: "p", instanceType: "t"},
			want: hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSNodePoolPlatform{InstanceType: "t", InstanceProfile: "p",
				Subnet: hyperv1.AWSResourceReference{ID: ptr.To("subnet-1")}, RootVolume: &hyperv1.Volume{}}},
		},
		"When AWS names no subnet it should ask for the flag": {
			cluster: hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{}}, machine: &awsMachines{}, fails: "--subnet-id is required",
		},
		"When Azure names a subnet it should take it": {
			cluster: hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{SubnetID: "s"}}, machine: &azureMachines{},
			want: hyperv1.NodePoolPlatform{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzureNodePoolPlatform{VMSize: "Standard_D4s_v5", SubnetID: "s",
				Image: hyperv1.AzureVMImage{Type: hyperv1.AzureMarketplace}}},
		},
		"When Azure names none it should ask for the flag": {
			cluster: hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform}, machine: &azureMachines{}, fails: "--nodepool-subnet-id is required",
		},
		"When GCP has a region it should take its first zone and the subnet of private access": {
			cluster: gcp, machine: &gcpMachines{},
			want: hyperv1.NodePoolPlatform{Type: hyperv1.GCPPlatform, GCP: &hyperv1.GCPNodePoolPlatform{MachineType: gcpMachineType, Zone: "us-central1-a", Subnet: "psc"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"},
				Spec: hyperv1.HostedClusterSpec{InfraID: "demo-abc23", Platform: tc.cluster, Release: hyperv1.Release{Image: "r/i:1"}}}
			c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(hc).Build()
			o := NodePoolOptions{Platform: tc.cluster.Type, Name: "w", Namespace: "clusters", ClusterName: "demo", Arch: hyperv1.ArchitectureAMD64, machines: tc.machine}
			err := completeNodePool(t.Context(), &o, c)
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(o.leftOpen()).To(BeEmpty())
			np := nodePoolOf(o)
			g.Expect(np.Spec.Release.Image).To(Equal("r/i:1"))
			g.Expect(np.Spec.Platform).To(BeComparableTo(tc.want))
		})
	}
}

// Where nobody names an address, node ports are at that of a node of the management cluster.
func TestNodePortsAtANode(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
	}}
	for name, tc := range map[string]struct {
		platform hyperv1.PlatformType
		change   func(*Options)
		want     string
	}{
		"When Agent has none it should take a node's":            {hyperv1.AgentPlatform, func(o *Options) { o.NodePorts = true }, "10.0.0.1"},
		"When Agent has one it should keep it":                   {hyperv1.AgentPlatform, func(o *Options) { o.NodePorts, o.APIServerAddress = true, "a" }, "a"},
		"When KubeVirt publishes by ingress it should need none": {hyperv1.KubevirtPlatform, func(*Options) {}, ""},
		"When KubeVirt publishes by node port it should take a node's": {
			hyperv1.KubevirtPlatform, func(o *Options) { o.NodePorts = true }, "10.0.0.1"},
		"When None has a load balancer it should need none": {hyperv1.NonePlatform, func(o *Options) { o.LoadBalancer = true }, ""},
		"When None has nothing it should take a node's":     {hyperv1.NonePlatform, func(*Options) {}, "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(node.DeepCopyObject().(client.Object)).Build()
			o := NewOptions(tc.platform)
			tc.change(&o)
			g.Expect(complete(t.Context(), &o, c)).To(Succeed())
			g.Expect(o.APIServerAddress).To(Equal(tc.want))
			var published []hyperv1.ServiceType
			for _, s := range services(o) {
				published = append(published, s.Service)
			}
			g.Expect(slices.Contains(published, hyperv1.OIDC)).To(Equal(tc.want != ""), "OIDC documents are published with node ports")
		})
	}
}

// Descriptions of infrastructure that can't be used are refused by name, without quoting what they hold.
func TestDescriptions(t *testing.T) {
	change := func(t *testing.T, path string, with map[string]any) string {
		t.Helper()
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content := map[string]any{}
		if err := json.Unmarshal(raw, &content); err != nil {
			t.Fatal(err)
		}
		for key, value := range with {
			content[key] = value
		}
		raw, _ = json.Marshal(content)
		changed := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(changed, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return changed
	}
	awsWith := func(t *testing.T, infra, iam map[string]any) []string {
		return []string{"cluster", "aws", "--infra-json", change(t, "testdata/in/infra-aws-proxy.json", infra), "--iam-json", change(t, "testdata/in/iam-aws-kms.json", iam), "--region", "us-east-1"}
	}
	powerVSWith := func(t *testing.T, infra map[string]any) []string {
		return []string{"cluster", "powervs", "--infra-json", change(t, "testdata/in/infra-powervs-made.json", infra)}
	}
	for name, tc := range map[string]struct {
		args func(t *testing.T) []string
		want string
	}{
		"When there is a role for a key and no key it should not fall back to another encryption": {
			func(t *testing.T) []string { return awsWith(t, nil, map[string]any{"kmsKeyARN": ""}) }, "name the key by --kms-key-arn"},
		"When there is no base domain it should name both places": {
			func(t *testing.T) []string { return awsWith(t, map[string]any{"baseDomain": ""}, nil) }, "--base-domain is required, or must be in --infra-json"},
		"When the proxy's authority is none it should say what it must be": {
			func(t *testing.T) []string { return awsWith(t, map[string]any{"proxyCA": "aHVudGVyMg"}, nil) }, "proxyCA must hold PEM certificates"},
		"When the proxy's key isn't in base64 it should say so": {
			func(t *testing.T) []string {
				return awsWith(t, map[string]any{"proxyPrivateSSHKey": "aHVudGVyMg!"}, nil)
			}, "must be in base64"},
		"When a Secret of PowerVS is missing it should name it": {
			func(t *testing.T) []string {
				return powerVSWith(t, map[string]any{"secrets": map[string]any{"ingressOperator": map[string]any{"data": map[string]any{"a": "aHVudGVyMg=="}}}})
			}, "secrets has no storageOperator"},
		"When a Secret of PowerVS is empty it should name it": {
			func(t *testing.T) []string {
				return powerVSWith(t, map[string]any{"secrets": map[string]any{"ingressOperator": map[string]any{}}})
			}, "secrets.ingressOperator has no data"},
		"When the description of PowerVS is none it should not quote it": {
			func(t *testing.T) []string { return powerVSWith(t, map[string]any{"secrets": "aHVudGVyMg"}) }, "must be what `create infra powervs` writes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cmd := Command()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SilenceUsage = true
			cmd.SetArgs(slices.Concat(tc.args(t), commonArgs))
			g.Expect(cmd.Execute()).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(out.String()).NotTo(ContainSubstring("aHVudGVyMg"))
		})
	}
}

func TestOpenStackCredentials(t *testing.T) {
	g := NewWithT(t)
	raw, err := os.ReadFile("testdata/in/clouds.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(t.TempDir(), "mine.yaml")
	g.Expect(os.WriteFile(path, append(raw, []byte("\n    cacert: testdata/in/no-such-file.pem\n")...), 0o600)).To(Succeed())
	t.Setenv("OS_CLIENT_CONFIG_FILE", path)
	cmd := Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage = true
	cmd.SetArgs(slices.Concat([]string{"cluster", "openstack", "--openstack-node-flavor", "m1.large"}, domainArgs, commonArgs))
	g.Expect(cmd.Execute()).To(MatchError(ContainSubstring("--openstack-ca-cert-file: open testdata/in/no-such-file.pem")), "the file of the environment is read, and the authority that it names")
}
