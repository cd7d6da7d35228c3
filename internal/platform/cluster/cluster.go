// Package cluster holds what the HostedCluster controller and a platform tell each other about a cluster as a whole.
package cluster

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Input is what conditions of a platform are computed from.
type Input struct {
	HostedCluster *hyperv1.HostedCluster
	// HostedControlPlane may be nil.
	HostedControlPlane *hyperv1.HostedControlPlane
	// Objects are what the platform's Observe found.
	Objects []client.Object
	// NodePools are all of the cluster.
	NodePools []hyperv1.NodePool
	// Documents: the installation has a bucket, in which another program publishes OIDC documents and says so in ValidOIDCConfiguration.
	Documents bool
}
