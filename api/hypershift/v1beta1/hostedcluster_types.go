package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostedCluster is a cluster whose control plane runs as pods of the management cluster. Creating one creates the control
// plane; NodePools give it workers; deleting it removes everything again.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostedclusters,shortName=hc;hcs,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.version.history[?(@.state==\"Completed\")].version",description="Newest release that is completely rolled out"
// +kubebuilder:printcolumn:name="CP Version",type="string",JSONPath=".status.controlPlaneVersion.history[?(@.state==\"Completed\")].version",description="Newest release that the management side of the control plane has completely rolled out"
// +kubebuilder:printcolumn:name="KubeConfig",type="string",JSONPath=".status.kubeconfig.name",description="Secret with the administrator's kubeconfig"
// +kubebuilder:printcolumn:name="Progress",type="string",JSONPath=".status.version.history[?(@.state!=\"\")].state",description="State of the newest rollout"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status",description="Whether the control plane serves"
// +kubebuilder:printcolumn:name="Progressing",type="string",JSONPath=".status.conditions[?(@.type==\"Progressing\")].status",description="Whether a release is being rolled out"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].message",description="Why the control plane does, or does not, serve"
// +kubebuilder:printcolumn:name="CP Progress",type="string",JSONPath=".status.controlPlaneVersion.history[0].state",description="State of the newest rollout of the management side",priority=1
// +kubebuilder:printcolumn:name="DP Progress",type="string",JSONPath=".status.version.history[0].state",description="State of the newest rollout of the hosted cluster's own side",priority=1
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec) || !has(oldSelf.spec.infraID) || (has(self.spec) && has(self.spec.infraID))",message="spec.infraID cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec) || !has(oldSelf.spec.clusterID) || (has(self.spec) && has(self.spec.clusterID))",message="spec.clusterID cannot be removed once set"
type HostedCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	//
	// +optional
	Spec HostedClusterSpec `json:"spec,omitzero"`

	// status is what the operators found.
	//
	// +optional
	Status HostedClusterStatus `json:"status,omitzero"`
}

// HostedClusterList is a list of HostedClusters.
//
// +kubebuilder:object:root=true
type HostedClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostedCluster `json:"items"`
}

// HostedClusterSpec is what a user wants of a hosted cluster.
//
// +kubebuilder:validation:XValidation:rule="(self.platform.type == 'IBMCloud' ? size(self.services) >= 3 : size(self.services) >= 4) || (oldSelf.hasValue() && oldSelf.value().services == self.services)",message="services must say how APIServer, OAuthServer, Konnectivity and Ignition are published: 4 entries, 3 on IBMCloud",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="self.platform.type != 'IBMCloud' ? self.services == oldSelf.services : true",message="services is immutable, except on IBMCloud"
// +kubebuilder:validation:XValidation:rule="(self.platform.type != 'Azure' || (has(self.platform.azure) && self.platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType == 'WorkloadIdentities') || self.services.exists(s, s.service == 'OAuthServer' && s.servicePublishingStrategy.type == 'Route')) || (oldSelf.hasValue() && oldSelf.value().services == self.services && has(oldSelf.value().platform.azure) == has(self.platform.azure) && (!has(self.platform.azure) || oldSelf.value().platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType == self.platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType))",message="on Azure with managed identities, OAuthServer must be published by Route",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(self.platform.type != 'Azure' || !has(self.platform.azure) || self.platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType != 'WorkloadIdentities' || self.services.exists(s, s.service == 'OAuthServer' && s.servicePublishingStrategy.type in ['Route', 'LoadBalancer'])) || (oldSelf.hasValue() && oldSelf.value().services == self.services && has(oldSelf.value().platform.azure) == has(self.platform.azure) && (!has(self.platform.azure) || oldSelf.value().platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType == self.platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType))",message="on Azure with workload identities, OAuthServer must be published by Route or LoadBalancer",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(self.platform.type == 'Azure' ? self.services.exists(s, s.service == 'Konnectivity' && s.servicePublishingStrategy.type == 'Route') : true) || (oldSelf.hasValue() && oldSelf.value().services == self.services)",message="on Azure, Konnectivity must be published by Route",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(self.platform.type == 'Azure' ? self.services.exists(s, s.service == 'Ignition' && s.servicePublishingStrategy.type == 'Route') : true) || (oldSelf.hasValue() && oldSelf.value().services == self.services)",message="on Azure, Ignition must be published by Route",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="has(self.issuerURL) || !has(self.serviceAccountSigningKey)",message="serviceAccountSigningKey needs issuerURL"
// +kubebuilder:validation:XValidation:rule="(!self.services.exists(s, s.service == 'APIServer' && has(s.servicePublishingStrategy.loadBalancer) && has(s.servicePublishingStrategy.loadBalancer.hostname) && s.servicePublishingStrategy.loadBalancer.hostname != \"\" && has(self.configuration) && has(self.configuration.apiServer) && has(self.configuration.apiServer.servingCerts) && has(self.configuration.apiServer.servingCerts.namedCertificates) && self.configuration.apiServer.servingCerts.namedCertificates.exists(c, has(c.names) && c.names.exists(n, n == s.servicePublishingStrategy.loadBalancer.hostname)))) || (oldSelf.hasValue() && oldSelf.value().services == self.services && has(oldSelf.value().configuration) && has(oldSelf.value().configuration.apiServer) && has(oldSelf.value().configuration.apiServer.servingCerts) && has(oldSelf.value().configuration.apiServer.servingCerts.namedCertificates) && oldSelf.value().configuration.apiServer.servingCerts.namedCertificates == self.configuration.apiServer.servingCerts.namedCertificates)",message="the hostname of the service APIServer cannot be among configuration.apiServer.servingCerts.namedCertificates names; the control plane makes its own certificate for it",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(!has(self.operatorConfiguration) || !has(self.operatorConfiguration.clusterNetworkOperator) || !has(self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) || !self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork || self.networking.networkType == 'Other') || (oldSelf.hasValue() && oldSelf.value().networking.networkType == self.networking.networkType && has(oldSelf.value().operatorConfiguration) && has(oldSelf.value().operatorConfiguration.clusterNetworkOperator) && has(oldSelf.value().operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) && oldSelf.value().operatorConfiguration.clusterNetworkOperator.disableMultiNetwork)",message="operatorConfiguration.clusterNetworkOperator.disableMultiNetwork may be set only when networking.networkType is Other",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(self.networking.networkType == 'OVNKubernetes' || !has(self.operatorConfiguration) || !has(self.operatorConfiguration.clusterNetworkOperator) || !has(self.operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig)) || (oldSelf.hasValue() && oldSelf.value().networking.networkType == self.networking.networkType && has(oldSelf.value().operatorConfiguration) && has(oldSelf.value().operatorConfiguration.clusterNetworkOperator) && has(oldSelf.value().operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig) && oldSelf.value().operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig == self.operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig)",message="operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig may be set only when networking.networkType is OVNKubernetes",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="has(self.secretEncryption) || !has(oldSelf.secretEncryption)",message="secretEncryption cannot be removed once set"
type HostedClusterSpec struct {
	// release names the release of the hosted cluster, and of its control plane unless controlPlaneRelease is set. Changing
	// it upgrades the control plane; NodePools have a release of their own.
	//
	// +required
	Release Release `json:"release"`

	// controlPlaneRelease names a release for the parts of the control plane that run in the management cluster only, so
	// that these can be patched alone. Unset means release.
	//
	// +optional
	ControlPlaneRelease *Release `json:"controlPlaneRelease,omitempty"`

	// clusterID identifies the cluster in telemetry. It is an RFC 4122 UUID. The operator sets one when it is unset; after
	// that it cannot change.
	//
	// +optional
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[a-fA-F0-9]{4}-[a-fA-F0-9]{4}-[a-fA-F0-9]{12}')",message="clusterID must be a UUID: 8-4-4-4-12 hexadecimal digits"
	// +kubebuilder:validation:XValidation:rule="oldSelf == '' || self == oldSelf",message="clusterID is immutable"
	ClusterID string `json:"clusterID,omitempty"`

	// infraID goes into the names and tags of what the cluster owns in a cloud. The operator sets {name}-{5 characters}
	// when it is unset; after that it cannot change.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="infraID must consist of lower-case letters, digits and '-', and start and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="oldSelf == '' || self == oldSelf",message="infraID is immutable"
	InfraID string `json:"infraID,omitempty"`

	// updateService is the URL of the update service that the cluster asks for recommended releases (OpenShift).
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="updateService must be an absolute URL"
	UpdateService string `json:"updateService,omitempty"`

	// channel is the update channel to ask for (OpenShift). Unset means that no updates are recommended.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Channel string `json:"channel,omitempty"`

	// platform says where the machines of the cluster live.
	//
	// +required
	Platform PlatformSpec `json:"platform"`

	// kubeAPIServerDNSName is one more name for the API server. It gets into the serving certificate, and a kubeconfig that
	// uses it is published as status.customKubeconfig. It may be set, changed and cleared at any time.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == '' || self.matches('^(?:(?:[a-zA-Z0-9-]+\\.)+[a-zA-Z]{2,}|[a-zA-Z0-9-]+)$')`,message="kubeAPIServerDNSName must be a DNS name such as api.example.com, or empty"
	KubeAPIServerDNSName string `json:"kubeAPIServerDNSName,omitempty"`

	// controllerAvailabilityPolicy says how many replicas the control plane has: with HighlyAvailable 3 of etcd and
	// kube-apiserver and 2 or 3 of the others, with SingleReplica 1. It cannot change.
	//
	// +optional
	// +kubebuilder:default:="HighlyAvailable"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="controllerAvailabilityPolicy is immutable"
	ControllerAvailabilityPolicy AvailabilityPolicy `json:"controllerAvailabilityPolicy,omitempty"`

	// infrastructureAvailabilityPolicy says the same for what runs on the workers: ingress, registry, monitoring.
	//
	// +optional
	// +kubebuilder:default:="SingleReplica"
	InfrastructureAvailabilityPolicy AvailabilityPolicy `json:"infrastructureAvailabilityPolicy,omitempty"`

	// dns says under which names the cluster is published.
	//
	// +optional
	DNS DNSSpec `json:"dns,omitzero"`

	// networking is the address plan of the cluster.
	//
	// +required
	// +kubebuilder:default:={networkType: "OVNKubernetes", clusterNetwork: {{cidr: "10.132.0.0/14"}}, serviceNetwork: {{cidr: "172.31.0.0/16"}}}
	Networking ClusterNetworking `json:"networking,omitzero"`

	// autoscaling configures the one cluster autoscaler that serves all NodePools with spec.autoScaling.
	//
	// +optional
	Autoscaling ClusterAutoscaling `json:"autoscaling,omitzero"`

	// etcd says where the cluster keeps its data.
	//
	// +required
	// +kubebuilder:default:={managementType: "Managed", managed: {storage: {type: "PersistentVolume", persistentVolume: {size: "8Gi"}}}}
	Etcd EtcdSpec `json:"etcd,omitzero"`

	// services says how the endpoints of the control plane are published: one entry per service. It cannot change, except
	// on IBMCloud.
	//
	// +required
	// +kubebuilder:validation:MaxItems=6
	Services []ServicePublishingStrategyMapping `json:"services"`

	// pullSecret names a Secret in this namespace whose key .dockerconfigjson gives access to the images of the release. It
	// is copied into the control-plane namespace and, on OpenShift, into the hosted cluster.
	//
	// +required
	PullSecret corev1.LocalObjectReference `json:"pullSecret"`

	// sshKey names a Secret in this namespace whose key id_rsa.pub may log in to nodes. Unset means that nobody may.
	//
	// +optional
	SSHKey corev1.LocalObjectReference `json:"sshKey,omitzero"`

	// issuerURL is the issuer of service account tokens. It cannot change.
	//
	// +optional
	// +kubebuilder:default:="https://kubernetes.default.svc"
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="issuerURL is immutable"
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="issuerURL must be an absolute URL"
	IssuerURL string `json:"issuerURL,omitempty"`

	// serviceAccountSigningKey names a Secret in this namespace whose key "key" holds the PEM private key that signs service
	// account tokens; "old-key.pub" may hold one more public key to accept. Unset means that a key is generated. It needs
	// issuerURL.
	//
	// +optional
	ServiceAccountSigningKey *corev1.LocalObjectReference `json:"serviceAccountSigningKey,omitempty"`

	// configuration holds the cluster-wide settings of OpenShift's config.openshift.io. What concerns Kubernetes itself
	// (certificates, audit, authentication, feature gates, proxy) holds for Kubernetes releases too.
	//
	// +optional
	Configuration *ClusterConfiguration `json:"configuration,omitempty"`

	// auditWebhook names a Secret in this namespace whose key webhook-kubeconfig says where audit events are sent.
	//
	// +optional
	AuditWebhook *corev1.LocalObjectReference `json:"auditWebhook,omitempty"`

	// imageContentSources lists mirrors of the repositories that the release refers to. Changing it rolls NodePools.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=255
	ImageContentSources []ImageContentSource `json:"imageContentSources,omitempty"`

	// additionalTrustBundle names a ConfigMap in this namespace whose key ca-bundle.crt holds certificates to trust besides
	// the public ones.
	//
	// +optional
	AdditionalTrustBundle *corev1.LocalObjectReference `json:"additionalTrustBundle,omitempty"`

	// secretEncryption says how Secrets are encrypted in etcd. It cannot be removed once set.
	//
	// +optional
	SecretEncryption *SecretEncryptionSpec `json:"secretEncryption,omitempty"`

	// fips says whether nodes run with FIPS-validated cryptography. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="fips is immutable"
	FIPS bool `json:"fips,omitempty"`

	// pausedUntil stops the operators from changing anything: "true" until it is removed, an RFC 3339 time until then.
	//
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:XValidation:rule=`self.matches('^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}.*$') || self in ['true', 'false', 'True', 'False']`,message="pausedUntil must be an RFC 3339 time such as 2027-01-31T12:00:00Z, or true or false"
	PausedUntil *string `json:"pausedUntil,omitempty"`

	// olmCatalogPlacement says where OpenShift's operator catalogs run. It cannot change.
	//
	// +optional
	// +kubebuilder:default:="management"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="olmCatalogPlacement is immutable"
	OLMCatalogPlacement OLMCatalogPlacement `json:"olmCatalogPlacement,omitempty"`

	// nodeSelector restricts the nodes of the management cluster that run pods of the control plane.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) <= 20",message="nodeSelector takes at most 20 labels"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are added to pods of the control plane.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=25
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// labels are added to pods of the control plane.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	Labels map[string]string `json:"labels,omitempty"`

	// capabilities switches optional parts of OpenShift on and off. It cannot change.
	//
	// +optional
	// +kubebuilder:default:={}
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="capabilities is immutable"
	Capabilities *Capabilities `json:"capabilities,omitempty"`

	// operatorConfiguration configures OpenShift's operators of the hosted cluster.
	//
	// +optional
	OperatorConfiguration *OperatorConfiguration `json:"operatorConfiguration,omitempty"`

	// autoNode has machines made one by one as pods need them, instead of by NodePools.
	//
	// +optional
	AutoNode *AutoNode `json:"autoNode,omitempty"`

	// monitoring says which metrics of the control plane go where.
	//
	// +optional
	Monitoring MonitoringSpec `json:"monitoring,omitzero"`
}

// HostedClusterStatus is what the operators found.
type HostedClusterStatus struct {
	// version is the rollout state of the release in the hosted cluster.
	//
	// +optional
	Version *ClusterVersionStatus `json:"version,omitempty"`

	// controlPlaneVersion is the rollout state of the parts of the control plane that run in the management cluster.
	//
	// +optional
	ControlPlaneVersion ControlPlaneVersionStatus `json:"controlPlaneVersion,omitzero"`

	// kubeconfig names a Secret whose key kubeconfig reaches the cluster as its administrator.
	//
	// +optional
	KubeConfig *corev1.LocalObjectReference `json:"kubeconfig,omitempty"`

	// customKubeconfig names a Secret whose key kubeconfig does so by the name spec.kubeAPIServerDNSName.
	//
	// +optional
	CustomKubeconfig *corev1.LocalObjectReference `json:"customKubeconfig,omitempty"`

	// kubeadminPassword names a Secret whose key password belongs to the user kubeadmin of OpenShift's OAuth server.
	//
	// +optional
	KubeadminPassword *corev1.LocalObjectReference `json:"kubeadminPassword,omitempty"`

	// ignitionEndpoint is the host, and maybe port, from which new machines get their configuration.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	IgnitionEndpoint string `json:"ignitionEndpoint,omitempty"`

	// controlPlaneEndpoint is where the API server is reached from outside.
	//
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitzero"`

	// oauthCallbackURLTemplate is the callback URL to register with an identity provider; [identity-provider-name] in it
	// stands for the name of the provider.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	OAuthCallbackURLTemplate string `json:"oauthCallbackURLTemplate,omitempty"`

	// conditions are the findings, one per type; the constants of this package name types and reasons.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=100
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastSuccessfulEtcdBackupURL is where the newest backup of etcd is (TechPreview).
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https|s3)://.*')",message="lastSuccessfulEtcdBackupURL must start with https:// or s3://"
	LastSuccessfulEtcdBackupURL string `json:"lastSuccessfulEtcdBackupURL,omitempty"`

	// payloadArch is the CPU architecture of spec.release.
	//
	// +optional
	PayloadArch PayloadArchType `json:"payloadArch,omitempty"`

	// configuration is what was found about the cluster-wide settings.
	//
	// +optional
	Configuration ConfigurationStatus `json:"configuration,omitzero"`

	// platform is what was found on the platform.
	//
	// +optional
	Platform *PlatformStatus `json:"platform,omitempty"`

	// autoNode counts the machines that spec.autoNode made.
	//
	// +optional
	AutoNode AutoNodeStatus `json:"autoNode,omitzero"`

	// secretEncryption says what data is encrypted with, and how far a change of key is.
	//
	// +optional
	SecretEncryption SecretEncryptionStatus `json:"secretEncryption,omitzero"`
}
