package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostedControlPlane is what the hypershift operator hands to the control-plane operator: the HostedCluster as it concerns
// the control plane. It has the name of the HostedCluster and lives in the control-plane namespace. Users read it; only the
// operators write it. It fulfils the control-plane contract of Cluster API.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostedcontrolplanes,shortName=hcp;hcps,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta1=v1beta1"
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type HostedControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the hypershift operator wants.
	//
	// +optional
	Spec HostedControlPlaneSpec `json:"spec,omitzero"`

	// status is what the control-plane operator, and the operators that it runs, found.
	//
	// +optional
	Status HostedControlPlaneStatus `json:"status,omitzero"`
}

// HostedControlPlaneList is a list of HostedControlPlanes.
//
// +kubebuilder:object:root=true
type HostedControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostedControlPlane `json:"items"`
}

// HostedControlPlaneSpec is the spec of a HostedCluster, defaulted and resolved. The fields mean what they mean there;
// comments say only what differs. References are to objects of the control-plane namespace, where the hypershift operator
// puts copies of the same name.
//
// +kubebuilder:validation:XValidation:rule="(self.platform.type == 'IBMCloud' ? size(self.services) >= 3 : size(self.services) >= 4) || (oldSelf.hasValue() && oldSelf.value().services == self.services)",message="services must say how APIServer, OAuthServer, Konnectivity and Ignition are published: 4 entries, 3 on IBMCloud",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(!has(self.operatorConfiguration) || !has(self.operatorConfiguration.clusterNetworkOperator) || !has(self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) || !self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork || self.networking.networkType == 'Other') || (oldSelf.hasValue() && oldSelf.value().networking.networkType == self.networking.networkType && has(oldSelf.value().operatorConfiguration) && has(oldSelf.value().operatorConfiguration.clusterNetworkOperator) && has(oldSelf.value().operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) && oldSelf.value().operatorConfiguration.clusterNetworkOperator.disableMultiNetwork)",message="operatorConfiguration.clusterNetworkOperator.disableMultiNetwork may be set only when networking.networkType is Other",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="has(self.secretEncryption) || !has(oldSelf.secretEncryption)",message="secretEncryption cannot be removed once set"
type HostedControlPlaneSpec struct {
	// releaseImage is the pull specification of the release of the hosted cluster.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	ReleaseImage string `json:"releaseImage"`

	// controlPlaneReleaseImage is the pull specification of the release of the parts that run in the management cluster
	// only. Unset means releaseImage.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ControlPlaneReleaseImage *string `json:"controlPlaneReleaseImage,omitempty"`

	// updateService is the URL of the update service.
	//
	// +optional
	UpdateService string `json:"updateService,omitempty"`

	// channel is the update channel.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Channel string `json:"channel,omitempty"`

	// pullSecret names a Secret with access to the images of the release.
	//
	// +required
	PullSecret corev1.LocalObjectReference `json:"pullSecret"`

	// sshKey names a Secret with the key that may log in to nodes; its name may be empty.
	//
	// +required
	SSHKey corev1.LocalObjectReference `json:"sshKey"`

	// issuerURL is the issuer of service account tokens.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	IssuerURL string `json:"issuerURL"`

	// networking is the address plan of the cluster.
	//
	// +optional
	Networking ClusterNetworking `json:"networking,omitzero"`

	// platform says where the machines of the cluster live. Agent in a HostedCluster is None here.
	//
	// +required
	Platform PlatformSpec `json:"platform"`

	// dns says under which names the cluster is published.
	//
	// +required
	DNS DNSSpec `json:"dns"`

	// serviceAccountSigningKey names a Secret with the key that signs service account tokens.
	//
	// +optional
	ServiceAccountSigningKey *corev1.LocalObjectReference `json:"serviceAccountSigningKey,omitempty"`

	// clusterID identifies the cluster in telemetry.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ClusterID string `json:"clusterID,omitempty"`

	// infraID goes into the names and tags of what the cluster owns in a cloud.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	InfraID string `json:"infraID"`

	// fips says whether nodes run with FIPS-validated cryptography.
	//
	// +optional
	FIPS bool `json:"fips,omitempty"`

	// kubeAPIServerDNSName is one more name for the API server.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == '' || self.matches('^(?:(?:[a-zA-Z0-9-]+\\.)+[a-zA-Z]{2,}|[a-zA-Z0-9-]+)$')`,message="kubeAPIServerDNSName must be a DNS name such as api.example.com, or empty"
	KubeAPIServerDNSName string `json:"kubeAPIServerDNSName,omitempty"`

	// controllerAvailabilityPolicy says how many replicas the control plane has.
	//
	// +optional
	// +kubebuilder:default:="HighlyAvailable"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="controllerAvailabilityPolicy is immutable"
	ControllerAvailabilityPolicy AvailabilityPolicy `json:"controllerAvailabilityPolicy,omitempty"`

	// infrastructureAvailabilityPolicy says how many replicas infrastructure workloads of the hosted cluster have.
	//
	// +optional
	// +kubebuilder:default:="SingleReplica"
	InfrastructureAvailabilityPolicy AvailabilityPolicy `json:"infrastructureAvailabilityPolicy,omitempty"`

	// kubeconfig names the Secret, and its key, in which the administrator's kubeconfig is published. Unset means the
	// Secret admin-kubeconfig and the key kubeconfig.
	//
	// +optional
	KubeConfig *KubeconfigSecretRef `json:"kubeconfig,omitempty"`

	// services says how the endpoints of the control plane are published.
	//
	// +required
	// +kubebuilder:validation:MaxItems=6
	Services []ServicePublishingStrategyMapping `json:"services"`

	// auditWebhook names a Secret that says where audit events are sent.
	//
	// +optional
	AuditWebhook *corev1.LocalObjectReference `json:"auditWebhook,omitempty"`

	// etcd says where the cluster keeps its data.
	//
	// +required
	Etcd EtcdSpec `json:"etcd"`

	// configuration holds the cluster-wide settings of OpenShift's config.openshift.io.
	//
	// +optional
	Configuration *ClusterConfiguration `json:"configuration,omitempty"`

	// imageContentSources lists mirrors of the repositories that the release refers to.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=255
	ImageContentSources []ImageContentSource `json:"imageContentSources,omitempty"`

	// additionalTrustBundle names a ConfigMap with certificates to trust besides the public ones.
	//
	// +optional
	AdditionalTrustBundle *corev1.LocalObjectReference `json:"additionalTrustBundle,omitempty"`

	// secretEncryption says how Secrets are encrypted in etcd. It cannot be removed once set.
	//
	// +optional
	SecretEncryption *SecretEncryptionSpec `json:"secretEncryption,omitempty"`

	// pausedUntil stops the operators from changing anything.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	PausedUntil *string `json:"pausedUntil,omitempty"`

	// olmCatalogPlacement says where OpenShift's operator catalogs run.
	//
	// +optional
	// +kubebuilder:default:="management"
	OLMCatalogPlacement OLMCatalogPlacement `json:"olmCatalogPlacement,omitempty"`

	// autoscaling configures the cluster autoscaler.
	//
	// +optional
	Autoscaling ClusterAutoscaling `json:"autoscaling,omitzero"`

	// nodeSelector restricts the nodes of the management cluster that run pods of the control plane.
	//
	// +optional
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

// HostedControlPlaneStatus is what the control-plane operator, and the operators that it runs, found.
type HostedControlPlaneStatus struct {
	// ready says that the API server serves. Cluster API waits for it.
	//
	// +required
	// +kubebuilder:default:=false
	Ready bool `json:"ready"`

	// initialized says that the control plane has served once. Cluster API waits for it.
	//
	// +required
	// +kubebuilder:default:=false
	Initialized bool `json:"initialized"`

	// externalManagedControlPlane tells Cluster API that the control plane has no Machines.
	//
	// +optional
	// +kubebuilder:default:=true
	ExternalManagedControlPlane *bool `json:"externalManagedControlPlane,omitempty"`

	// controlPlaneEndpoint is where the API server is reached from outside.
	//
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitzero"`

	// oauthCallbackURLTemplate is the callback URL to register with an identity provider.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	OAuthCallbackURLTemplate string `json:"oauthCallbackURLTemplate,omitempty"`

	// versionStatus is the rollout state of the release in the hosted cluster.
	//
	// +optional
	VersionStatus *ClusterVersionStatus `json:"versionStatus,omitempty"`

	// controlPlaneVersion is the rollout state of the parts of the control plane that run in the management cluster.
	//
	// +optional
	ControlPlaneVersion ControlPlaneVersionStatus `json:"controlPlaneVersion,omitzero"`

	// version is the release version that is completely rolled out.
	//
	// Deprecated: read versionStatus.history.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Version string `json:"version,omitempty"`

	// releaseImage is the release image that is completely rolled out.
	//
	// Deprecated: read versionStatus.history.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ReleaseImage string `json:"releaseImage,omitempty"`

	// lastReleaseImageTransitionTime is when releaseImage changed last.
	//
	// Deprecated: read versionStatus.history.
	//
	// +optional
	LastReleaseImageTransitionTime *metav1.Time `json:"lastReleaseImageTransitionTime,omitempty"`

	// kubeConfig names the Secret, and its key, with the administrator's kubeconfig.
	//
	// +optional
	KubeConfig *KubeconfigSecretRef `json:"kubeConfig,omitempty"`

	// customKubeconfig names the Secret, and its key, with the kubeconfig for spec.kubeAPIServerDNSName.
	//
	// +optional
	CustomKubeconfig *KubeconfigSecretRef `json:"customKubeconfig,omitempty"`

	// kubeadminPassword names a Secret with the password of the user kubeadmin.
	//
	// +optional
	KubeadminPassword *corev1.LocalObjectReference `json:"kubeadminPassword,omitempty"`

	// conditions are the findings, one per type; the constants of this package name types and reasons.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=100
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// nodeCount is how many nodes the hosted cluster has.
	//
	// +optional
	NodeCount *int `json:"nodeCount,omitempty"`

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
