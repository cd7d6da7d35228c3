package v1beta1

import (
	configv1 "hcp.internal/api/config/v1"
)

// ClusterConfiguration holds the specs of the cluster-wide settings that OpenShift keeps in the singletons of
// config.openshift.io/v1. Objects that they refer to live in the namespace of the HostedCluster.
type ClusterConfiguration struct {
	// apiServer configures kube-apiserver: serving certificates, client certificates, audit, TLS.
	//
	// +optional
	APIServer *configv1.APIServerSpec `json:"apiServer,omitempty"`

	// authentication says how users are authenticated.
	//
	// +optional
	Authentication *configv1.AuthenticationSpec `json:"authentication,omitempty"`

	// featureGate says which features are on.
	//
	// +optional
	FeatureGate *configv1.FeatureGateSpec `json:"featureGate,omitempty"`

	// image says where images may come from. Changing it rolls NodePools.
	//
	// +optional
	Image *configv1.ImageSpec `json:"image,omitempty"`

	// ingress configures the way of traffic to applications.
	//
	// +optional
	Ingress *configv1.IngressSpec `json:"ingress,omitempty"`

	// network configures the network beyond spec.networking.
	//
	// +optional
	Network *configv1.NetworkSpec `json:"network,omitempty"`

	// oauth configures OpenShift's OAuth server.
	//
	// +optional
	OAuth *configv1.OAuthSpec `json:"oauth,omitempty"`

	// operatorhub says which operator catalogs are offered, at first; later the hosted cluster decides.
	//
	// +optional
	OperatorHub *configv1.OperatorHubSpec `json:"operatorhub,omitempty"`

	// scheduler says how pods are placed.
	//
	// +optional
	Scheduler *configv1.SchedulerSpec `json:"scheduler,omitempty"`

	// proxy says by which proxy the outside is reached. Changing it rolls NodePools.
	//
	// +optional
	Proxy *configv1.ProxySpec `json:"proxy,omitempty"`
}

// ConfigurationStatus is what was found about the cluster-wide settings.
type ConfigurationStatus struct {
	// authentication is what was found about authentication.
	//
	// +optional
	Authentication configv1.AuthenticationStatus `json:"authentication,omitzero"`
}
