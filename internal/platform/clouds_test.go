package platform_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/cluster"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/platform/platformtest"
	"hcp.internal/platform/internal/release/bootimages"
)

// input is a cluster with one pool of a platform, with every field that the platform has.
type input struct {
	Cluster            hyperv1.HostedClusterSpec    `json:"cluster"`
	ClusterAnnotations map[string]string            `json:"clusterAnnotations"`
	Pool               hyperv1.NodePoolSpec         `json:"pool"`
	PoolAnnotations    map[string]string            `json:"poolAnnotations"`
	Secrets            map[string]map[string]string `json:"secrets"`
	BootsNoRelease     bool                         `json:"bootsNoRelease"`
	CacheName          string                       `json:"cacheName"`
}

// read is the input of a folder of testdata.
func read(t testing.TB, folder string) input {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", folder, "input.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	in := input{}
	if err := yaml.UnmarshalStrict(raw, &in); err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	return in
}

// example makes what a platform is asked about of an input.
func (in input) example() platformtest.Example {
	e := platformtest.NewExample()
	infraID := e.HostedCluster.Spec.InfraID
	e.HostedCluster.Spec, e.HostedCluster.Annotations = *in.Cluster.DeepCopy(), in.ClusterAnnotations
	e.HostedCluster.Spec.InfraID = infraID
	e.HostedCluster.Status.IgnitionEndpoint = "ignition.example.com"
	e.NodePool.Spec, e.NodePool.Annotations = *in.Pool.DeepCopy(), in.PoolAnnotations
	if in.CacheName != "" {
		e.NodePool.Status.Platform = &hyperv1.NodePoolPlatformStatus{KubeVirt: &hyperv1.KubeVirtNodePoolStatus{CacheName: in.CacheName}}
	}
	e.NodePool.Spec.ClusterName = e.HostedCluster.Name
	e.BootsNoRelease = in.BootsNoRelease
	e.Release.Version, e.Release.Kubernetes = "4.22.1", false
	e.Release.BootImages = &bootimages.Streams{Default: bootimages.Stream{
		"amd64": &bootimages.Images{
			GCP: bootimages.GCP{Project: "rhcos-cloud", Name: "rhcos-gcp"}, KubeVirt: "quay.io/rhcos/kubevirt@sha256:1",
			OpenStack: bootimages.Download{URL: "https://rhcos.example.com/openstack.qcow2.gz", SHA256: "0a1b"},
			Azure:     map[string]bootimages.Marketplace{"Gen2": {Publisher: "azureopenshift", Offer: "aro4", SKU: "422-v2", Version: "422.1.1"}},
		},
		"ppc64le": &bootimages.Images{PowerVS: map[string]bootimages.StoredObject{"eu-gb": {Release: "9.6.20260101-0", Bucket: "rhcos-eu-gb", Object: "rhcos.ova.gz"}}},
	}}
	return e
}

// objects are what the platform reads.
func (in input) objects() []client.Object {
	list := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agents"}}}
	for name, data := range in.Secrets {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}, Data: map[string][]byte{}}
		for k, v := range data {
			secret.Data[k] = []byte(v)
		}
		list = append(list, secret)
	}
	return list
}

// rendered is all that a platform makes of an example, or says about it.
func rendered(t testing.TB, e platformtest.Example, objects []client.Object) string {
	t.Helper()
	p, err := platform.For(e.HostedCluster.Spec.Platform.Type)
	if err != nil {
		t.Fatal(err)
	}
	const namespace = "clusters-demo"
	text := ""
	add := func(what any, err error) {
		if err != nil {
			what = "error: " + err.Error()
		}
		raw, err := yaml.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		text += "---\n" + string(raw)
	}
	infra, err := p.InfraCR(e.HostedCluster, namespace, hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443})
	add(infra, err)
	if c, ok := p.(platform.Companion); ok {
		list, err := c.Companions(e.HostedCluster, namespace)
		add(list, err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	credentials, err := p.Credentials(t.Context(), reader, e.HostedCluster, namespace)
	add(credentials, err)
	provider, err := p.CAPIProvider(e.HostedCluster, nil)
	add(provider, err)
	add(p.CAPIProviderPolicyRules(), nil)
	in := machine.Input{HostedCluster: e.HostedCluster, NodePool: e.NodePool, Release: e.Release}
	template, err := p.MachineTemplate(in)
	add(template, err)
	if r, ok := p.(platform.PoolReporter); ok {
		set, _ := r.PoolConditions(in)
		add(set, nil)
	}
	if r, ok := p.(platform.ConditionReporter); ok {
		set, _ := r.Conditions(cluster.Input{HostedCluster: e.HostedCluster})
		add(set, nil)
	}
	if v, ok := p.(platform.Validator); ok {
		add(v.Mistakes(e.HostedCluster), nil)
	}
	return text
}

// folders are those of testdata with an input each.
var folders = map[string]hyperv1.PlatformType{
	"kubevirt": hyperv1.KubevirtPlatform, "agent": hyperv1.AgentPlatform, "openstack": hyperv1.OpenStackPlatform, "azure": hyperv1.AzurePlatform,
	"azure-managed": hyperv1.AzurePlatform, "azure-image": hyperv1.AzurePlatform, "kubevirt-other": hyperv1.KubevirtPlatform, "gcp": hyperv1.GCPPlatform, "powervs": hyperv1.PowerVSPlatform, "ibmcloud": hyperv1.IBMCloudPlatform,
}

func TestGolden(t *testing.T) {
	for folder, kind := range folders {
		t.Run("When every field of "+folder+" is set it should make these objects", func(t *testing.T) {
			g := NewWithT(t)
			in := read(t, folder)
			g.Expect(in.Cluster.Platform.Type).To(Equal(kind))
			got := rendered(t, in.example(), in.objects())
			golden := filepath.Join("testdata", folder, "objects.yaml")
			if os.Getenv("UPDATE") == "true" {
				g.Expect(os.WriteFile(golden, []byte(got), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(golden)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(string(want)), "run the test with UPDATE=true, and read the difference")
		})
		t.Run("When "+folder+" is asked as the controllers ask it should keep the contract of a platform", func(t *testing.T) {
			in := read(t, folder)
			platformtest.RunOn(t, func() platform.Platform {
				p, err := platform.For(kind)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return p
			}, in.example(), in.objects()...)
		})
	}
}
