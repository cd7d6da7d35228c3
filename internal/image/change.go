package image

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// ForArchitecture is an image that says it is for another architecture than this machine's: "arm64". Its programs have to be, which CheckPrograms looks at.
func ForArchitecture(img v1.Image, arch string) (v1.Image, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's config: %w", err)
	}
	file = file.DeepCopy()
	file.Architecture = arch
	return mutate.ConfigFile(img, file)
}

// WithFiles is an image with one more layer.
func WithFiles(img v1.Image, files ...File) (v1.Image, error) {
	l, err := NewLayer(files...)
	if err != nil {
		return nil, fmt.Errorf("building a layer: %w", err)
	}
	return mutate.AppendLayers(img, l)
}

// WithLabels is an image with more labels.
func WithLabels(img v1.Image, labels map[string]string) (v1.Image, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's config: %w", err)
	}
	file = file.DeepCopy()
	if file.Config.Labels == nil {
		file.Config.Labels = map[string]string{}
	}
	for k, v := range labels {
		file.Config.Labels[k] = v
	}
	return mutate.ConfigFile(img, file)
}

// ReleaseImages are references by digest of what a Kubernetes release consists of. Empty ones are left out of it.
type ReleaseImages struct {
	Kubernetes     string // etcd, kube-apiserver, kube-controller-manager, kube-scheduler
	KubernetesNode string // kubelet, kube-proxy
	Platform       string // our operators
	Sidecar        string // ours on workers, and the ends of tunnels
	CoreDNS, Pause string
	ClusterAPI     string
	Flannel        string
	LocalStorage   string
	LocalNode      string // workers of platform Local
	Karpenter      string // Karpenter's core with machines of platform Local; local releases have it once it was built
}

// LocalNodeTag is the tag of a release that names the image of workers of platform Local.
const LocalNodeTag = "local-node"

// KarpenterTag is the tag of a release that names the image of hcp-karpenter.
const KarpenterTag = "karpenter"

// StandInTags are the tags of a release for stock programs that ours stand in for: the two ends of the tunnel to workers, the
// daemon that changes workers in place, and the way of pods to an API with a name.
var StandInTags = []string{"apiserver-network-proxy", "apiserver-network-proxy-agent", "machine-config-operator", "kube-apiserver-node-proxy"}

// Tags are the tags of a release image of i, for Release.
func (i ReleaseImages) Tags() map[string]string {
	all := map[string]string{
		"coredns": i.CoreDNS, "pause": i.Pause, "controlplane-operator": i.Platform, "kube-proxy": i.KubernetesNode, "kubelet": i.KubernetesNode,
		"cluster-capi-controllers": i.ClusterAPI, LocalNodeTag: i.LocalNode, "kube-flannel": i.Flannel, "local-storage-provisioner": i.LocalStorage,
		KarpenterTag: i.Karpenter,
	}
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all[component] = i.Kubernetes
	}
	for _, tag := range StandInTags {
		all[tag] = i.Sidecar
	}
	for tag, ref := range all {
		if ref == "" {
			delete(all, tag)
		}
	}
	return all
}
