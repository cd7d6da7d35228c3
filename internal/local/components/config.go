package components

import (
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/local/mgmtpki"
	"hcp.internal/platform/internal/local/network"
)

// PKI makes the certificates and kubeconfigs of all processes.
func PKI(p Paths, now time.Time) (*mgmtpki.Bundle, error) {
	b, err := mgmtpki.Open(p.PKI(), now)
	if err != nil {
		return nil, err
	}
	loopback, node := net.IPv4(127, 0, 0, 1).To4(), net.ParseIP(network.NodeIP).To4()
	subject := func(cn string, orgs ...string) pkix.Name { return pkix.Name{CommonName: cn, Organization: orgs} }
	leaves := []mgmtpki.Leaf{
		{Name: Etcd, Subject: subject("etcd"), DNS: []string{"localhost"}, IPs: []net.IP{loopback}, Server: true, Client: true},
		{Name: "etcd-client", Subject: subject("kube-apiserver-etcd-client"), Client: true},
		{Name: APIServer, Subject: subject(APIServer), Server: true,
			DNS: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			IPs: []net.IP{node, net.ParseIP(network.APIServiceIP).To4(), loopback}},
		{Name: "loopback", Subject: subject("localhost"), DNS: []string{"localhost"}, IPs: []net.IP{loopback}, Server: true},
		{Name: "kubelet-server", Subject: subject("system:node:"+NodeName, "system:nodes"), DNS: []string{NodeName}, IPs: []net.IP{node}, Server: true},
		{Name: "kubelet-client", Subject: subject("kube-apiserver-kubelet-client", "system:masters"), Client: true},
		{Name: "front-proxy", Subject: subject("front-proxy"), Client: true},
		{Name: "admin", Subject: subject("admin", "system:masters"), Client: true},
		{Name: ControllerManager, Subject: subject("system:kube-controller-manager"), Client: true},
		{Name: Scheduler, Subject: subject("system:kube-scheduler"), Client: true},
		{Name: Proxy, Subject: subject("system:kube-proxy"), Client: true},
		{Name: Kubelet, Subject: subject("system:node:"+NodeName, "system:nodes"), Client: true},
	}
	for _, l := range leaves {
		if err := b.Ensure(l); err != nil {
			return nil, err
		}
	}
	if err := b.EnsureServiceAccountKey(); err != nil {
		return nil, err
	}
	for _, name := range []string{ControllerManager, Scheduler, Proxy, Kubelet} {
		if err := b.EnsureKubeconfig(b.Kubeconfig(name), name, APIURL); err != nil {
			return nil, err
		}
	}
	return b, b.EnsureKubeconfig(p.Kubeconfig(), "admin", APIURL)
}

// File is a configuration file to write.
type File struct {
	Path string
	Data []byte
}

// Files are all configuration files of the processes.
func Files(p Paths, pki *mgmtpki.Bundle) ([]File, error) {
	kubelet, err := yaml.Marshal(kubeletConfig(p, pki))
	if err != nil {
		return nil, fmt.Errorf("encoding the kubelet's configuration: %w", err)
	}
	proxy, err := yaml.Marshal(proxyConfig(pki))
	if err != nil {
		return nil, fmt.Errorf("encoding kube-proxy's configuration: %w", err)
	}
	cni, err := json.MarshalIndent(cniConfig(p), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the CNI configuration: %w", err)
	}
	hosts := fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", RegistryHost)
	return []File{
		{p.Conf("kubelet.yaml"), kubelet},
		{p.Conf("kube-proxy.yaml"), proxy},
		{p.Conf("containerd.toml"), []byte(containerdConfig(p))},
		{p.Conf(auditPolicyFile), []byte(auditPolicy)},
		{filepath.Join(p.CNIConf(), "10-"+network.Bridge+".conflist"), cni},
		{filepath.Join(p.ContainerdRegistry(), RegistryHost, "hosts.toml"), []byte(hosts)},
	}, nil
}

// Write writes files that differ and makes the folders that the processes need.
func Write(p Paths, files []File) error {
	for _, dir := range []string{p.Logs(), p.PodLogs(), p.Etcd(), p.Kubelet(), p.Volumes(), p.Containerd(), p.CNIData()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating a folder of the state: %w", err)
		}
	}
	for _, f := range files {
		if have, err := os.ReadFile(f.Path); err == nil && string(have) == string(f.Data) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return fmt.Errorf("creating the folder of %s: %w", f.Path, err)
		}
		if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", f.Path, err)
		}
	}
	return nil
}

const auditPolicyFile = "audit-policy.yaml"

// auditPolicy logs that each request was made, and by whom, but nothing of what was in it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

func kubeletConfig(p Paths, pki *mgmtpki.Bundle) map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"address":    network.NodeIP,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": pki.Cert("ca")},
		},
		"authorization":     map[string]any{"mode": "Webhook"},
		"tlsCertFile":       pki.Cert("kubelet-server"),
		"tlsPrivateKeyFile": pki.Key("kubelet-server"),
		"cgroupDriver":      "cgroupfs",
		"cgroupRoot":        "/" + CgroupRoot,
		// The machine may have version 1 control groups, which the kubelet refuses by default.
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"clusterDNS":               []string{network.DNSServiceIP},
		"clusterDomain":            "cluster.local",
		"containerRuntimeEndpoint": "unix://" + p.ContainerdSocket(),
		"podLogsDir":               p.PodLogs(),
		"volumePluginDir":          filepath.Join(p.Kubelet(), "volume-plugins"),
		"readOnlyPort":             0,
		// The chains that it would make are for dockershim's successors elsewhere; kube-proxy does without them.
		"makeIPTablesUtilChains": false,
		"serializeImagePulls":    false,
		"maxPods":                240, // of the 253 addresses in the node's subnet
		// A developer's disk is often nearly full; evicting control planes for that would surprise.
		"evictionHard":                map[string]string{"memory.available": "200Mi", "nodefs.available": "1Gi", "imagefs.available": "1Gi"},
		"imageGCHighThresholdPercent": 100,
		"containerLogMaxSize":         "10Mi",
		"containerLogMaxFiles":        2,
		"registryPullQPS":             0,
		"eventRecordQPS":              0,
		"kubeAPIQPS":                  100,
		"kubeAPIBurst":                200,
	}
}

func proxyConfig(pki *mgmtpki.Bundle) map[string]any {
	return map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"clientConnection":   map[string]any{"kubeconfig": pki.Kubeconfig(Proxy)},
		"hostnameOverride":   NodeName,
		"bindAddress":        network.NodeIP,
		"healthzBindAddress": proxyHealth,
		"metricsBindAddress": "127.0.0.1:10249",
		// nftables keeps all rules in two tables of its own, so that taking them away is two commands.
		"mode":              "nftables",
		"clusterCIDR":       network.ClusterCIDR,
		"detectLocalMode":   "ClusterCIDR",
		"nodePortAddresses": []string{network.NodeIP + "/32"},
		// 0 leaves the machine's own settings alone.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
		"nftables":  map[string]any{"syncPeriod": "30s", "minSyncPeriod": "100ms"},
	}
}

func cniConfig(p Paths) map[string]any {
	return map[string]any{
		"cniVersion": "1.0.0",
		"name":       CgroupRoot,
		"plugins": []any{
			map[string]any{
				"type": "bridge", "bridge": network.Bridge, "hairpinMode": true,
				// The bridge and its address are ours: as a gateway, the plugin would switch on forwarding for the whole machine.
				"isGateway": false,
				"ipam": map[string]any{
					"type": "host-local", "dataDir": p.CNIData(),
					"ranges": []any{[]any{map[string]any{"subnet": network.PodCIDR, "gateway": network.NodeIP, "rangeStart": "10.244.0.2"}}},
					"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
				},
			},
		},
	}
}

func containerdConfig(p Paths) string {
	return fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q

[grpc]
  address = %[3]q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[4]q
  # Machines without CAP_SYS_RESOURCE may not lower an oom_score_adj; without this every sandbox fails there.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  max_concurrent_downloads = 4

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    discard_unpacked_layers = true
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = %[5]q
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %[6]q
    conf_dir = %[7]q
    max_conf_num = 1

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %[8]q
`, filepath.Join(p.Containerd(), "root"), filepath.Join(p.Containerd(), "state"), p.ContainerdSocket(), PauseImage,
		filepath.Join(p.Containerd(), "runc"), cniBinFolder, p.CNIConf(), p.ContainerdRegistry())
}
