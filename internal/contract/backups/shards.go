package backups

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// ShardsKey of Secret etcd-restore lists the shards that have to be in the backup, separated by commas. One that isn't listed begins empty when the backup has nothing of it.
const ShardsKey = "shards"

// ShardsOf are the shards of a managed etcd: those that a backup holds, and those that it leaves out, because their data goes with their pods. Both are sorted.
func ShardsOf(etcd hyperv1.EtcdSpec) (saved, volatile []string) {
	if etcd.ManagementType != hyperv1.Managed || etcd.Managed == nil {
		return nil, nil
	}
	for _, s := range etcd.Managed.Shards {
		if s.Storage != nil && s.Storage.Type == hyperv1.EmptyDirEtcdShardStorage {
			volatile = append(volatile, string(s.Name))
		} else {
			saved = append(saved, string(s.Name))
		}
	}
	slices.Sort(saved)
	slices.Sort(volatile)
	return saved, volatile
}

// EtcdOf is the component of a shard, its StatefulSet and the label app of its pods; those of the main etcd for no shard.
func EtcdOf(shard string) string {
	if shard == "" {
		return names.Etcd
	}
	return names.Etcd + "-" + shard
}

// EtcdsOf are the main etcd and those of shards.
func EtcdsOf(shards []string) []string {
	all := []string{names.Etcd}
	for _, s := range shards {
		all = append(all, EtcdOf(s))
	}
	return all
}

// PodsOf selects the pods of the main etcd and of shards.
func PodsOf(shards []string) metav1.LabelSelector {
	if len(shards) == 0 {
		return metav1.LabelSelector{MatchLabels: map[string]string{"app": names.Etcd}}
	}
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: EtcdsOf(shards)}}}
}

// ClientServiceOf is the Service of a shard, or of the main etcd.
func ClientServiceOf(shard string) string {
	if shard == "" {
		return names.Etcd + "-client"
	}
	return names.Etcd + "-client-" + shard
}
