// Package clusterconfig describes a hosted cluster of an OpenShift release to those who configure its machines, in ConfigMaps of the control plane namespace
// that the control-plane-operator writes: machine-config-server, whose keys are files for the release's machine-config tools, and the core configurations,
// manifests that the NodePool controller puts into the configuration of each pool.
//
// All of it is rendered from the HostedControlPlane alone. What the hosted cluster has of the same kinds may have been changed by its users.
package clusterconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/contract/token"
)

// Input is what the ConfigMaps are made of.
type Input struct {
	HCP *hyperv1.HostedControlPlane
	// RootCA and KubeletClientCA are PEM: the authority of the control plane, and those of who calls kubelets.
	RootCA, KubeletClientCA string
	// TrustBundle are further authorities that machines trust, in PEM; empty: none.
	TrustBundle string
	// SSHKey is the public key of the user core; empty: nobody logs in.
	SSHKey string
}

const (
	configAPI  = "config.openshift.io/v1"
	machineAPI = "machineconfiguration.openshift.io/v1"
)

// Objects are the ConfigMaps. The same input gives the same bytes. It is an error when the control plane has no address yet, or a network is none.
func Objects(in Input) ([]*corev1.ConfigMap, error) {
	server, err := MachineConfigServer(in)
	if err != nil {
		return nil, err
	}
	core, err := Core(in)
	return append([]*corev1.ConfigMap{server}, core...), err
}

// MachineConfigServer is the ConfigMap of that name.
func MachineConfigServer(in Input) (*corev1.ConfigMap, error) {
	if in.RootCA == "" || in.KubeletClientCA == "" {
		return nil, errors.New("the certificate authorities of the control plane are not there yet")
	}
	infrastructure, err := infrastructure(in.HCP)
	if err != nil {
		return nil, err
	}
	network, err := network(in.HCP)
	if err != nil {
		return nil, err
	}
	files := map[string]any{
		"cluster-infrastructure-02-config.yaml": infrastructure,
		"cluster-network-02-config.yaml":        network,
		"cluster-dns-02-config.yaml":            dns(in.HCP),
		"cluster-proxy-01-config.yaml":          proxy(in.HCP),
		"image-config.yaml":                     image(in.HCP),
		"cluster-apiserver-config.yaml":         apiServer(in.HCP),
		"install-config.yaml":                   installConfig(in.HCP),
		"master.machineconfigpool.yaml":         pool("master"),
		"worker.machineconfigpool.yaml":         pool("worker"),
	}
	if in.TrustBundle != "" {
		files[token.TrustBundleFile] = map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "user-ca-bundle", "namespace": "openshift-config"},
			"data": map[string]any{"ca-bundle.crt": in.TrustBundle},
		}
	}
	data := map[string]string{
		"root-ca.crt": in.RootCA, "signer-ca.crt": in.KubeletClientCA, token.ConfigurationHashKey: token.ConfigurationHash(in.HCP.Spec.Configuration),
	}
	for name, object := range files {
		if data[name], err = text(object); err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return configMap(in.HCP, token.MachineConfigServer, nil, data), nil
}

// Core are the core configurations.
func Core(in Input) ([]*corev1.ConfigMap, error) {
	ssh := map[string]any{"ignition": map[string]any{"version": "3.2.0"}}
	if in.SSHKey != "" {
		ssh["passwd"] = map[string]any{"users": []any{map[string]any{"name": "core", "sshAuthorizedKeys": []any{in.SSHKey}}}}
	}
	manifests := map[string]map[string]any{
		"ignition-config-fips":       machineConfig("30-fips", map[string]any{"fips": in.HCP.Spec.FIPS}),
		"ignition-config-worker-ssh": machineConfig("99-worker-ssh", map[string]any{"config": ssh}),
	}
	if sources := in.HCP.Spec.ImageContentSources; len(sources) > 0 {
		var mirrors []any
		for _, s := range sources {
			mirrors = append(mirrors, map[string]any{"source": s.Source, "mirrors": s.Mirrors})
		}
		manifests["ignition-config-40-image-content-source"] = map[string]any{
			"apiVersion": configAPI, "kind": "ImageDigestMirrorSet",
			"metadata": map[string]any{"name": "cluster", "labels": map[string]any{"machineconfiguration.openshift.io/role": "worker"}},
			"spec":     map[string]any{"imageDigestMirrors": mirrors},
		}
	}
	var list []*corev1.ConfigMap
	for name, manifest := range manifests {
		data, err := text(manifest)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
		list = append(list, configMap(in.HCP, name, map[string]string{hyperv1.CoreIgnitionConfigLabel: "true"}, map[string]string{"config": data}))
	}
	slices.SortFunc(list, func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func configMap(hcp *hyperv1.HostedControlPlane, name string, labels, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: name, Labels: labels}, Data: data,
	}
}

func text(object any) (string, error) {
	out, err := yaml.Marshal(object)
	return string(out), err
}

// singleton is the object "cluster" of a kind.
func singleton(kind string, spec any) map[string]any {
	return map[string]any{"apiVersion": configAPI, "kind": kind, "metadata": map[string]any{"name": "cluster"}, "spec": spec}
}

func machineConfig(name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": machineAPI, "kind": "MachineConfig",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"machineconfiguration.openshift.io/role": "worker"}}, "spec": spec}
}

// pool is a MachineConfigPool. That of masters is the one that is served, and has what is for workers.
func pool(name string) map[string]any {
	return map[string]any{
		"apiVersion": machineAPI, "kind": "MachineConfigPool",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"machineconfiguration.openshift.io/mco-built-in": ""}},
		"spec": map[string]any{
			"machineConfigSelector": map[string]any{"matchLabels": map[string]any{"machineconfiguration.openshift.io/role": "worker"}},
			"nodeSelector":          map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/worker": ""}},
		},
	}
}

func dns(hcp *hyperv1.HostedControlPlane) any {
	spec := map[string]any{"baseDomain": payload.BaseDomain(hcp)}
	for field, id := range map[string]string{"publicZone": hcp.Spec.DNS.PublicZoneID, "privateZone": hcp.Spec.DNS.PrivateZoneID} {
		if id != "" {
			spec[field] = map[string]any{"id": id}
		}
	}
	if aws := hcp.Spec.Platform.AWS; hcp.Spec.Platform.Type == hyperv1.AWSPlatform && aws != nil && aws.SharedVPC != nil {
		spec["platform"] = map[string]any{"type": "AWS", "aws": map[string]any{"privateZoneIAMRole": aws.SharedVPC.RolesRef.IngressARN}}
	}
	return singleton("DNS", spec)
}

func infrastructure(hcp *hyperv1.HostedControlPlane) (any, error) {
	external, internal, err := payload.APIServerURLs(hcp)
	if err != nil {
		return nil, err
	}
	topology := "SingleReplica"
	if hcp.Spec.InfrastructureAvailabilityPolicy == hyperv1.HighlyAvailable {
		topology = "HighlyAvailable"
	}
	name := string(hcp.Spec.Platform.Type)
	platformSpec, platformStatus, cloud := platform(hcp)
	platformSpec["type"], platformStatus["type"] = name, name
	spec := map[string]any{"platformSpec": platformSpec, "cloudConfig": cloud}
	object := singleton("Infrastructure", spec)
	object["status"] = map[string]any{
		"platform": name, "platformStatus": platformStatus, "apiServerURL": external, "apiServerInternalURI": internal,
		"etcdDiscoveryDomain": payload.BaseDomain(hcp), "infrastructureName": hcp.Spec.InfraID, "controlPlaneTopology": "External", "infrastructureTopology": topology,
	}
	return object, nil
}

// network is the address plan.
func network(hcp *hyperv1.HostedControlPlane) (any, error) {
	pods, services, err := payload.Networks(hcp)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{"clusterNetwork": pods, "serviceNetwork": services, "networkType": string(hcp.Spec.Networking.NetworkType)}
	if c := hcp.Spec.Configuration; c != nil && c.Network != nil {
		if c.Network.ExternalIP != nil {
			spec["externalIP"] = c.Network.ExternalIP
		}
		if c.Network.ServiceNodePortRange != "" {
			spec["serviceNodePortRange"] = c.Network.ServiceNodePortRange
		}
	}
	object := singleton("Network", spec)
	object["status"] = map[string]any{"clusterNetwork": pods, "serviceNetwork": services, "networkType": string(hcp.Spec.Networking.NetworkType)}
	return object, nil
}

// proxy has a status, too: the tools go by it.
func proxy(hcp *hyperv1.HostedControlPlane) any {
	object := singleton("Proxy", map[string]any{})
	status := map[string]any{}
	if c := hcp.Spec.Configuration; c != nil && c.Proxy != nil {
		object["spec"] = c.Proxy
		if c.Proxy.HTTPProxy != "" || c.Proxy.HTTPSProxy != "" {
			status = map[string]any{"httpProxy": c.Proxy.HTTPProxy, "httpsProxy": c.Proxy.HTTPSProxy, "noProxy": strings.Join(NoProxy(hcp), ",")}
		}
	}
	object["status"] = status
	return object
}

// NoProxy are the destinations that nodes reach without the proxy, sorted.
func NoProxy(hcp *hyperv1.HostedControlPlane) []string {
	list := []string{"127.0.0.1", "localhost", ".svc", ".cluster.local", ".local"}
	n := hcp.Spec.Networking
	for _, e := range n.MachineNetwork {
		list = append(list, string(e.CIDR))
	}
	for _, e := range n.ClusterNetwork {
		list = append(list, string(e.CIDR))
	}
	for _, e := range n.ServiceNetwork {
		list = append(list, string(e.CIDR))
	}
	list = append(list, payload.CloudDestinations(hcp)...)
	list = append(list, payload.OwnNoProxy(hcp)...)
	slices.Sort(list)
	return slices.Compact(list)
}

func image(hcp *hyperv1.HostedControlPlane) any {
	if c := hcp.Spec.Configuration; c != nil && c.Image != nil {
		return singleton("Image", c.Image)
	}
	return singleton("Image", map[string]any{})
}

func apiServer(hcp *hyperv1.HostedControlPlane) any {
	if c := hcp.Spec.Configuration; c != nil && c.APIServer != nil {
		return singleton("APIServer", c.APIServer)
	}
	return singleton("APIServer", map[string]any{})
}

// installConfig is what of the installer's configuration is still read.
func installConfig(hcp *hyperv1.HostedControlPlane) any {
	networks := []any{}
	for _, n := range hcp.Spec.Networking.MachineNetwork {
		networks = append(networks, map[string]any{"cidr": string(n.CIDR)})
	}
	on := map[string]any{"none": map[string]any{}}
	switch p := hcp.Spec.Platform; {
	case p.Type == hyperv1.AWSPlatform && p.AWS != nil:
		on = map[string]any{"aws": map[string]any{"region": p.AWS.Region}}
	case p.Type == hyperv1.GCPPlatform && p.GCP != nil:
		on = map[string]any{"gcp": map[string]any{"projectID": p.GCP.Project, "region": p.GCP.Region}}
	}
	return map[string]any{"apiVersion": "v1", "controlPlane": map[string]any{"replicas": 1}, "networking": map[string]any{"machineNetwork": networks}, "platform": on}
}
