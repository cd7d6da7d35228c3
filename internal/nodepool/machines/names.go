package machines

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Annotations and labels of Cluster API, its autoscaler and users of both.
const (
	PausedAnnotation           = "cluster.x-k8s.io/paused"
	MaxSizeAnnotation          = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
	MinSizeAnnotation          = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
	CPUAnnotation              = "machine.openshift.io/vCPU"
	MemoryAnnotation           = "machine.openshift.io/memoryMb"
	GPUAnnotation              = "machine.openshift.io/GPU"
	CapacityLabelsAnnotation   = "capacity.cluster-autoscaler.kubernetes.io/labels"
	CapacityTaintsAnnotation   = "capacity.cluster-autoscaler.kubernetes.io/taints"
	archLabel                  = "kubernetes.io/arch"
	maxSelector                = 43 // so that Cluster API can make longer names of it
	maxName                    = 253
	hashLength                 = 8
	machineSetDeletionRandom   = "Random"
	nodeDeletionTimeoutSeconds = 10 // how long Cluster API tries to delete a Node whose API does not answer; its own default
)

// Selector is key and value of the label by which Machines of a pool are known.
func Selector(infraID, clusterName, pool string) string {
	return Shorten(infraID+"-"+clusterName+"-"+pool, maxSelector)
}

// TemplateName is the name of the machine template with this identity.
func TemplateName(pool string, identity any) (string, error) {
	raw, err := json.Marshal(identity)
	if err != nil {
		return "", fmt.Errorf("hashing the machine template: %w", err)
	}
	hash := digest(raw)
	if limit := maxName - hashLength - 1; len(pool) > limit {
		pool = Shorten(pool, limit)
	}
	return pool + "-" + hash, nil
}

// Shorten cuts s to limit characters. What was cut is in a hash at the end, so that two long names stay two.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit-hashLength-1] + "-" + digest([]byte(s))
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:hashLength]
}
