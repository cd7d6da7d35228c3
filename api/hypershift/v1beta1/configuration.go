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
}
