package provider

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	// FieldOwner is what this provider writes as.
	FieldOwner = "capi-provider-local"
	// LeaseName is the lease that it takes.
	LeaseName = "capi-provider-local"
	// clusterLabel holds the name of the Cluster, on everything that belongs to it.
	clusterLabel = "cluster.x-k8s.io/cluster-name"
	// pausedAnnotation pauses one object.
	pausedAnnotation = "cluster.x-k8s.io/paused"
	// userDataKey is the key of the bootstrap Secret.
	userDataKey = "value"
	// maxLabel is the longest value of a label, and the longest name of a host.
	maxLabel = 63
)

// providerID names a machine for the node and for Cluster API.
func providerID(namespace, name string) string { return "local://" + namespace + "/" + name }

// labelValue is a name as a label's value: itself where it fits, else its start and a hash of it.
func labelValue(name string) string {
	if len(name) <= maxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxLabel-9] + "-" + hex.EncodeToString(sum[:4])
}
