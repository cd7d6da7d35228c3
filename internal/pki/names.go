package pki

import corev1 "k8s.io/api/core/v1"

// Keys of the Secrets and ConfigMaps of this package.
const (
	CACertKey         = "ca.crt"
	CAKeyKey          = "ca.key"
	TLSCertKey        = corev1.TLSCertKey
	TLSKeyKey         = corev1.TLSPrivateKeyKey
	KubeconfigKey     = "kubeconfig"
	CAPIKubeconfigKey = "value"

	ServiceAccountPrivateKeyKey = "service-account.key"
	ServiceAccountPublicKeyKey  = "service-account.pub"
)

// Secrets that hold certificate authorities.
const (
	RootCA             = "root-ca"
	ClusterSigner      = "cluster-signer-ca"
	EtcdSigner         = "etcd-signer"
	EtcdMetricsSigner  = "etcd-metrics-signer"
	AggregatorSigner   = "kas-aggregator-client-signer"
	ControlPlaneSigner = "kube-control-plane-signer"
	KubeletSigner      = "kube-apiserver-to-kubelet-signer"
	SystemAdminSigner  = "system-admin-signer"
	HCCOSigner         = "hcco-signer"
	KASBootstrapSigner = "kas-bootstrap-container-signer"
	KonnectivitySigner = "konnectivity-signer"

	IgnitionCA            = "ignition-server-ca-cert"
	unmanagedEtcdCAKey    = "etcd-client-ca.crt"
	authorityOrgUnit      = "openshift"
	konnectivityOrgUnit   = "kubernetes"
	internalAPIHostSuffix = ".hypershift.local"
)

// Secrets that hold leaf certificates.
const (
	KASServer           = "kas-server-crt"
	KASServerPrivate    = "kas-server-private-crt"
	KASKubeletClient    = "kas-kubelet-client-crt"
	KASAggregatorClient = "kas-aggregator-crt"
	SchedulerClient     = "kube-scheduler-client"
	KCMClient           = "kube-controller-manager"
	SystemAdminClient   = "system-admin-client"
	HCCOClient          = "hcco-client"
	KASBootstrapClient  = "kas-bootstrap-container-client"
	NodeBootstrapClient = "kas-bootstrap-client"
	MetricsClient       = "metrics-client"
	EtcdClient          = "etcd-client-tls"
	EtcdServer          = "etcd-server-tls"
	EtcdPeer            = "etcd-peer-tls"
	EtcdMetricsClient   = "etcd-metrics-client-tls"
	KonnectivityServer  = "konnectivity-server"
	KonnectivityCluster = "konnectivity-cluster"
	KonnectivityClient  = "konnectivity-client"
	KonnectivityAgent   = "konnectivity-agent"
	KCMServer           = "kcm-server"
	SchedulerServer     = "scheduler-server"
	IgnitionServing     = "ignition-server-serving-cert"
	etcdClientName      = "etcd-client"
	etcdDiscoveryName   = "etcd-discovery"

	konnectivityPublic   = "konnectivity-server"
	konnectivityInternal = "konnectivity-server-local"
)

// ConfigMaps that hold trust bundles, all under CACertKey.
const (
	RootCABundle         = "root-ca"
	EtcdCABundle         = "etcd-ca"
	EtcdMetricsCABundle  = "etcd-metrics-ca"
	AggregatorCABundle   = "aggregator-client-ca"
	ClientCABundle       = "client-ca"
	KubeletCABundle      = "kubelet-client-ca"
	KonnectivityCABundle = "konnectivity-ca-bundle"
	// TotalClientCABundle is written by the control-plane-pki-operator (key UserBundleKey) and becomes a part of ClientCABundle.
	TotalClientCABundle = "total-client-ca"
)

// Secrets that hold kubeconfigs, under KubeconfigKey unless said otherwise.
const (
	AdminKubeconfig       = "admin-kubeconfig"
	CustomAdminKubeconfig = "custom-admin-kubeconfig"

	LocalhostKubeconfig     = "localhost-kubeconfig"
	HCCOKubeconfig          = "hcco-kubeconfig"
	KASBootstrapKubeconfig  = "kas-bootstrap-container-kubeconfig"
	KCMKubeconfig           = "kube-controller-manager-kubeconfig"
	SchedulerKubeconfig     = "kube-scheduler-kubeconfig"
	NodeBootstrapKubeconfig = "bootstrap-kubeconfig"
)

// Labels and annotations.
const (
	// KubeconfigScopeLabel says from where the server of a kubeconfig can be reached: local, external or bootstrap.
	KubeconfigScopeLabel = "hypershift.openshift.io/kubeconfig"
	// CAHashAnnotation identifies the authority that signed a leaf.
	CAHashAnnotation = "hypershiftlite.openshift.io/ca-hash"
	// DisableAnnotation on a HostedControlPlane stops everything that this package does.
	DisableAnnotation = "hypershift.openshift.io/disable-pki-reconciliation"
	// ValidityAnnotation on a HostedControlPlane is the life of its leaves as a Go duration.
	ValidityAnnotation = "hypershift.openshift.io/certificate-validity"
	// RenewalAnnotation on a HostedControlPlane is the share of the life, between 0 and 1, that is left when a leaf is renewed.
	RenewalAnnotation = "hypershift.openshift.io/certificate-renewal"

	capiClusterLabel = "cluster.x-k8s.io/cluster-name"
)

// EtcdShardServer and EtcdShardPeer are the Secrets of a shard of etcd that correspond to EtcdServer and EtcdPeer.
func EtcdShardServer(shard string) string { return "etcd-" + shard + "-server-tls" }

// EtcdShardPeer is described at EtcdShardServer.
func EtcdShardPeer(shard string) string { return "etcd-" + shard + "-peer-tls" }

// CAPIKubeconfig is the Secret (key CAPIKubeconfigKey) by whose name Cluster API finds the hosted cluster.
func CAPIKubeconfig(infraID string) string { return infraID + "-kubeconfig" }

// InternalAPIHost is the name by which nodes of a private cluster reach the API.
func InternalAPIHost(hcpName string) string { return "api." + hcpName + internalAPIHostSuffix }
