package openshift

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/release"
)

// Input is everything that objects may depend on. Adding a source means adding a field, and reading it in Observe.
type Input struct {
	HCP *hyperv1.HostedControlPlane
	// Release is that of the hosted cluster; not nil.
	Release *release.Release
	// Version and Kubernetes are those of the control plane, whose operators the ClusterOperators speak of.
	Version, Kubernetes string
	// Tunnel from the control plane to the nodes, and where the OAuth server is published.
	Tunnel    resources.Tunnel
	OAuthHost string
	OAuthPort int32
	// MetricsHost is the name at which the control plane offers its metrics; empty: none yet.
	MetricsHost string
	// OperatorImage is the image of this operator, for what it runs on nodes.
	OperatorImage string
	// ManagedService is "ARO-HCP" on Azure Red Hat OpenShift.
	ManagedService string
	// Control is what the control plane namespace holds, Hosted what the hosted cluster does.
	Control Control
	Hosted  Hosted
	// Cleared: this process has removed leftovers of older releases already.
	Cleared bool
	// Random gives so many random bytes; Now is the time of transitions.
	Random func(n int) []byte
	Now    time.Time
	// Bcrypt hashes a password.
	Bcrypt func(password []byte) ([]byte, error)
}

// Control is what the control plane namespace holds, by name. What is missing isn't there.
type Control struct {
	ConfigMaps map[string]*corev1.ConfigMap
	Secrets    map[string]*corev1.Secret
	Services   map[string]*corev1.Service
	// Kubelets are the ConfigMaps with settings of kubelets.
	Kubelets []corev1.ConfigMap
	// Machines are those of a KubeVirt cluster, on which applications and load balancers are reached, by name.
	Machines []clusterv1.Machine
	// Mirrors are Services beside its virtual machines that stand for load balancers of the hosted cluster; MirrorsErr says why they can't be read.
	Mirrors    []corev1.Service
	MirrorsErr error
}

// Hosted is what of the hosted cluster decides about more than the object that it is in. All of it may be anything.
type Hosted struct {
	// Objects by "Kind namespace/name"; see wanted.
	Objects map[string]map[string]any
	// Kubelets are copies of settings of kubelets that are there, by name.
	Kubelets map[string]KubeletCopy
}

// KubeletCopy is a copy of settings of kubelets: of which NodePool, and whether it says that it is a copy.
type KubeletCopy struct {
	NodePool string
	Mirrored bool
}

func (in Input) configMap(name, key string) string {
	if cm := in.Control.ConfigMaps[name]; cm != nil {
		return cm.Data[key]
	}
	return ""
}

func (in Input) secret(name string) *corev1.Secret { return in.Control.Secrets[name] }

func (in Input) platform() hyperv1.PlatformType { return in.HCP.Spec.Platform.Type }

func (in Input) on(platforms ...hyperv1.PlatformType) bool {
	return slices.Contains(platforms, in.platform())
}

func (in Input) has(name hyperv1.OptionalCapability) bool { return payload.HasCapability(in.HCP, name) }

func (in Input) oauth() bool { return payload.OAuthEnabled(in.HCP) }

func (in Input) configuration() hyperv1.ClusterConfiguration {
	if c := in.HCP.Spec.Configuration; c != nil {
		return *c
	}
	return hyperv1.ClusterConfiguration{}
}

// aro says whether this is Azure Red Hat OpenShift.
func (in Input) aro() bool {
	azure := in.HCP.Spec.Platform.Azure
	if azure == nil {
		return in.ManagedService == payload.ARO
	}
	return azure.AzureAuthenticationConfig.AzureAuthenticationConfigType == hyperv1.AzureAuthenticationTypeManagedIdentities
}

// highlyAvailable says whether workloads of the infrastructure have two replicas.
func (in Input) highlyAvailable() bool {
	return in.HCP.Spec.InfrastructureAvailabilityPolicy == hyperv1.HighlyAvailable
}
