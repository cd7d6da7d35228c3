// Package images is how the control-plane-operator tells the hosted-cluster-config-operator which images of the hosted cluster's release to run
// on nodes: an environment variable of TAG=REFERENCE pairs, with a comma between them.
package images

// Env is the variable.
const Env = "RELEASE_IMAGES"

// LabelVersion is the label of an image with the version of what it holds; of our own image it is a semantic version without "v".
const LabelVersion = "org.opencontainers.image.version"

// Tags of images that run on nodes.
const (
	KubeProxy    = "kube-proxy"
	CoreDNS      = "coredns"
	Flannel      = "kube-flannel"
	LocalStorage = "local-storage-provisioner"
	TunnelAgent  = "apiserver-network-proxy-agent"
	APIProxy     = "kube-apiserver-node-proxy"
	// MachineConfig changes nodes in place. It is OpenShift's; a Kubernetes release that can do it has it, too.
	MachineConfig = "machine-config-operator"
)

// Tags are all that are passed on, in the order in which they are.
func Tags() []string {
	return []string{TunnelAgent, CoreDNS, APIProxy, Flannel, KubeProxy, LocalStorage, MachineConfig}
}
