package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/images"
)

// configHashAnnotation on a pod template restarts pods when their configuration changes: these programs read it once.
const configHashAnnotation = "hypershift.openshift.io/config-hash"

// dnsReplicas are enough for one to answer while the other is moved.
const dnsReplicas = 2

// nodeProxy is kube-proxy, which makes Services work on nodes.
func nodeProxy(in Input) ([]client.Object, error) {
	image, ok := in.Images[images.KubeProxy]
	if !ok {
		return nil, nil
	}
	kubeconfig, err := nodeKubeconfig(in)
	if err != nil {
		return nil, err
	}
	objects := load("kube-proxy.yaml")
	config, err := yaml.Marshal(map[string]any{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"clientConnection": map[string]any{"kubeconfig": "/etc/kube-proxy/kubeconfig"},
		"mode":             "nftables",
		"clusterCIDR":      strings.Join(clusterCIDRs(in.HCP), ","),
		"detectLocalMode":  "ClusterCIDR",
		// 0 leaves the node's own settings alone; a worker in a pod may not change them.
		"conntrack":          map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
		"metricsBindAddress": "127.0.0.1:10249",
	})
	if err != nil {
		return nil, fmt.Errorf("encoding kube-proxy's configuration: %w", err)
	}
	find[*corev1.ConfigMap](objects).Data = map[string]string{"config.yaml": string(config), "kubeconfig": kubeconfig}
	daemons := find[*appsv1.DaemonSet](objects)
	complete(&daemons.Spec.Template, image, string(config), kubeconfig)
	return objects, nil
}

// podNetwork is flannel's host-gw: pods of different nodes reach each other by routes. It is for those who have the control
// plane allocate pod networks to nodes and bring no network of their own, which spec.networking says with networkType Other
// and allocateNodeCIDRs Enabled.
func podNetwork(in Input) ([]client.Object, error) {
	image, ok := in.Images[images.Flannel]
	networking := in.HCP.Spec.Networking
	if !ok || networking.NetworkType != hyperv1.Other || ptr.Deref(networking.AllocateNodeCIDRs, "") != hyperv1.AllocateNodeCIDRsEnabled {
		return nil, nil
	}
	kubeconfig, err := nodeKubeconfig(in)
	if err != nil {
		return nil, err
	}
	conf := map[string]any{"EnableNFTables": true, "EnableIPv4": false, "Backend": map[string]any{"Type": "host-gw"}}
	for _, cidr := range clusterCIDRs(in.HCP) {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("spec.networking.clusterNetwork: %q is no network", cidr)
		}
		if prefix.Addr().Is4() {
			conf["EnableIPv4"], conf["Network"] = true, cidr
		} else {
			conf["EnableIPv6"], conf["IPv6Network"] = true, cidr
		}
	}
	data, err := json.MarshalIndent(conf, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding flannel's configuration: %w", err)
	}
	objects := load("flannel.yaml")
	find[*corev1.ConfigMap](objects).Data = map[string]string{"net-conf.json": string(data), "kubeconfig": kubeconfig}
	daemons := find[*appsv1.DaemonSet](objects)
	complete(&daemons.Spec.Template, image, string(data), kubeconfig)
	return objects, nil
}

// clusterDNS is CoreDNS behind the tenth address of the Service network, which kubelets tell their pods. As soon as there are two
// nodes it runs on both, so that names are found while either is drained, changed or lost.
func clusterDNS(in Input) ([]client.Object, error) {
	image, ok := in.Images[images.CoreDNS]
	if !ok {
		return nil, nil
	}
	address, err := dnsAddress(in.HCP)
	if err != nil {
		return nil, err
	}
	objects := load("coredns.yaml")
	deployment := find[*appsv1.Deployment](objects)
	deployment.Spec.Replicas = ptr.To(int32(min(max(in.Nodes, 1), dnsReplicas)))
	complete(&deployment.Spec.Template, image) // it reads its configuration again by itself
	service := find[*corev1.Service](objects)
	service.Spec.ClusterIP = address
	return objects, nil
}

// dnsAddress is the tenth address of the first Service network.
func dnsAddress(hcp *hyperv1.HostedControlPlane) (string, error) {
	if len(hcp.Spec.Networking.ServiceNetwork) == 0 {
		return "", errors.New("spec.networking.serviceNetwork is empty")
	}
	cidr := string(hcp.Spec.Networking.ServiceNetwork[0].CIDR)
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return "", fmt.Errorf("spec.networking.serviceNetwork: %q is no network", cidr)
	}
	addr := prefix.Masked().Addr()
	for range 10 {
		addr = addr.Next()
	}
	if !prefix.Contains(addr) {
		return "", fmt.Errorf("spec.networking.serviceNetwork: %q has no tenth address for DNS", cidr)
	}
	return addr.String(), nil
}

func clusterCIDRs(hcp *hyperv1.HostedControlPlane) []string {
	var cidrs []string
	for _, n := range hcp.Spec.Networking.ClusterNetwork {
		cidrs = append(cidrs, string(n.CIDR))
	}
	return cidrs
}

// complete gives a pod template its image, and a mark that changes with its configuration.
func complete(template *corev1.PodTemplateSpec, image string, configuration ...string) {
	template.Spec.Containers[0].Image = image
	if len(configuration) == 0 {
		return
	}
	hash := fnv.New64a()
	for _, c := range configuration {
		fmt.Fprintf(hash, "%d:%s", len(c), c)
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[configHashAnnotation] = fmt.Sprintf("%x", hash.Sum64())
}
