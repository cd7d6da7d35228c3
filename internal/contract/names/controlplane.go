package names

import corev1 "k8s.io/api/core/v1"

// Operators, by the name of their program. It is their field owner in server-side apply, too, and the name of their Deployment.
const (
	HypershiftOperator   = "hypershift-operator"
	ControlPlaneOperator = "control-plane-operator"
	ConfigOperator       = "hosted-cluster-config-operator"
	PKIOperator          = "control-plane-pki-operator"
)

// Components of a control plane besides its operators: their workloads, and the value of label
// hypershift.openshift.io/control-plane-component on their pods. Etcd is the name of a shard's, too, with the shard's behind a dash.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	IgnitionServer        = "ignition-server"
	ClusterAPI            = "cluster-api"
	CAPIProvider          = "capi-provider"
)

// StaysAwake says whether a component runs in a cluster that sleeps, too: those that wake it, renew its certificates and delete it.
func StaysAwake(component string) bool {
	return component == ControlPlaneOperator || component == ClusterAPI || component == CAPIProvider
}

// Objects in every control-plane namespace that hold what the user gave.
const (
	PullSecret        = "pull-secret"    // Secret; DockerConfigKey
	SSHKey            = "ssh-key"        // Secret; SSHPublicKey
	UserCABundle      = "user-ca-bundle" // ConfigMap; CABundleKey
	ServiceAccountKey = "sa-signing-key" // Secret
)

// Keys of these objects, and of the user's own that they are copies of.
const (
	DockerConfigKey = corev1.DockerConfigJsonKey
	SSHPublicKey    = "id_rsa.pub"
	CABundleKey     = "ca-bundle.crt"
)

// ServiceNetworkKubeconfig is the Secret with a kubeconfig of an administrator that leads to the API server by its Service.
const ServiceNetworkKubeconfig = "service-network-admin-kubeconfig"

// OwnedByLabel with value HypershiftOperator is on everything that this operator writes into control-plane namespaces and publishes beside
// HostedClusters. Caches are limited to it: the operator never holds Secrets of others in memory.
const OwnedByLabel = "hypershift.openshift.io/owned-by"

// ContainerMachinesAnnotation is "true" on a HostedCluster, and copied to its HostedControlPlane, whose machines are containers although its platform
// has virtual ones: where a cloud is emulated, for tests and development. Machines of platform Local need it not.
const ContainerMachinesAnnotation = "hypershift.openshift.io/machines-are-containers"

// ControlPlaneOperatorVersion is an annotation of the Deployment of a control-plane-operator: the semantic version, without "v", of its image. It is missing
// where the image doesn't tell.
const ControlPlaneOperatorVersion = "hypershift.openshift.io/control-plane-operator-version"

// ManagedByLabel with value ControlPlaneOperator is on the workload of every component of a control plane.
const ManagedByLabel = "hypershift.openshift.io/managed-by"
