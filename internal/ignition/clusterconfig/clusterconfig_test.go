package clusterconfig

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func example(mutate ...func(*Input)) Input {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	hcp.Spec.Platform.Type, hcp.Spec.InfraID, hcp.Spec.DNS.BaseDomain = hyperv1.NonePlatform, "demo-x7k2p", "example.com"
	hcp.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
	hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
	hcp.Spec.Networking.NetworkType = hyperv1.OVNKubernetes
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443}
	in := Input{HCP: hcp, RootCA: "root", KubeletClientCA: "kubelet"}
	for _, m := range mutate {
		m(&in)
	}
	return in
}

func TestMachineConfigServer(t *testing.T) {
	t.Run("When a cluster is described it should have every file that the tools read", func(t *testing.T) {
		g := NewWithT(t)
		cm, err := MachineConfigServer(example())
		g.Expect(err).NotTo(HaveOccurred())
		for _, key := range []string{"root-ca.crt", "signer-ca.crt", "cluster-dns-02-config.yaml", "cluster-infrastructure-02-config.yaml", "cluster-network-02-config.yaml",
			"cluster-proxy-01-config.yaml", "image-config.yaml", "cluster-apiserver-config.yaml", "install-config.yaml", "master.machineconfigpool.yaml",
			"worker.machineconfigpool.yaml", "configuration-hash"} {
			g.Expect(cm.Data).To(HaveKey(key))
		}
		g.Expect(cm.Data).NotTo(HaveKey("user-ca-bundle-config.yaml"))
		g.Expect(cm.Data["configuration-hash"]).To(BeEmpty(), "there is no spec.configuration")
		g.Expect(cm.Data["cluster-dns-02-config.yaml"]).To(ContainSubstring("baseDomain: demo.example.com"))
		g.Expect(cm.Data["cluster-infrastructure-02-config.yaml"]).To(And(ContainSubstring("apiServerURL: https://api.example.com:6443"), ContainSubstring("controlPlaneTopology: External")))
		g.Expect(cm.Data["cluster-network-02-config.yaml"]).To(ContainSubstring("hostPrefix: 23"))
		g.Expect(cm.Data["master.machineconfigpool.yaml"]).To(ContainSubstring("machineconfiguration.openshift.io/role: worker"))
		again, err := MachineConfigServer(example())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(cm))
	})
	t.Run("When there is a proxy it should have a status, by which the tools go", func(t *testing.T) {
		g := NewWithT(t)
		cm, err := MachineConfigServer(example(func(in *Input) {
			in.TrustBundle = "more"
			in.HCP.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://proxy:3128", NoProxy: "a.example, 10.0.0.0/8"}}
		}))
		g.Expect(err).NotTo(HaveOccurred())
		var proxy struct{ Status map[string]string }
		g.Expect(yaml.Unmarshal([]byte(cm.Data["cluster-proxy-01-config.yaml"]), &proxy)).To(Succeed())
		g.Expect(proxy.Status).To(HaveKeyWithValue("noProxy", ".cluster.local,.local,.svc,10.0.0.0/8,10.132.0.0/14,127.0.0.1,172.31.0.0/16,a.example,localhost"))
		g.Expect(cm.Data).To(HaveKey("user-ca-bundle-config.yaml"))
		g.Expect(cm.Data["configuration-hash"]).NotTo(BeEmpty())
	})
	for name, tc := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"When the API has no address yet it should wait":        {func(in *Input) { in.HCP.Status.ControlPlaneEndpoint.Host = "" }, "status.controlPlaneEndpoint"},
		"When there are no authorities yet it should wait":      {func(in *Input) { in.RootCA = "" }, "certificate authorities"},
		"When a network is none it should name field and value": {func(in *Input) { in.HCP.Spec.Networking.ClusterNetwork[0].CIDR = "x" }, `spec.networking.clusterNetwork[0].cidr "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := MachineConfigServer(example(tc.change))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestCore(t *testing.T) {
	names := func(list []*corev1.ConfigMap) (out []string) {
		for _, cm := range list {
			out = append(out, cm.Name)
		}
		return out
	}
	t.Run("When nothing is set it should have two", func(t *testing.T) {
		g := NewWithT(t)
		list, err := Core(example())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(list)).To(Equal([]string{"ignition-config-fips", "ignition-config-worker-ssh"}))
		g.Expect(list[0].Data["config"]).To(ContainSubstring("fips: false"))
		g.Expect(list[0].Labels).To(HaveKeyWithValue(hyperv1.CoreIgnitionConfigLabel, "true"))
	})
	t.Run("When there are mirrors, a key and FIPS it should tell machines", func(t *testing.T) {
		g := NewWithT(t)
		list, err := Core(example(func(in *Input) {
			in.SSHKey, in.HCP.Spec.FIPS = "ssh-ed25519 AAAA", true
			in.HCP.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "quay.io", Mirrors: []string{"mirror.example.com"}}}
		}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(list)).To(Equal([]string{"ignition-config-40-image-content-source", "ignition-config-fips", "ignition-config-worker-ssh"}))
		all := list[0].Data["config"] + list[1].Data["config"] + list[2].Data["config"]
		for _, part := range []string{"kind: ImageDigestMirrorSet", "mirror.example.com", "fips: true", "ssh-ed25519 AAAA"} {
			g.Expect(strings.Contains(all, part)).To(BeTrue(), part)
		}
	})
}
