package oadp

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

const (
	veleroAPI = "velero.io/v1"
	// labelLocation repeats the storage location, as Velero's own commands do.
	labelLocation = "velero.io/storage-location"
	// labelHostedCluster and labelHostedClusterNamespace name the hosted cluster on a Schedule, which outlives its backups' names.
	labelHostedCluster          = "hypershift.openshift.io/hosted-cluster"
	labelHostedClusterNamespace = "hypershift.openshift.io/hosted-cluster-namespace"
	// labelBootImage is on claims with the boot image of KubeVirt machines, which are made anew from the release.
	labelBootImage = "hypershift.openshift.io/is-kubevirt-rhcos"
)

// list is strings as a list of an unstructured object.
func list(items []string) []any {
	out := make([]any, len(items))
	for i := range items {
		out[i] = items[i]
	}
	return out
}

// namespaces are those of the hosted cluster, of its control plane, and the additional ones.
func (o *Common) namespaces() []any {
	return list(append([]string{o.ClusterNamespace, names.ControlPlaneNamespace(o.ClusterNamespace, o.ClusterName)}, o.Additional...))
}

func (o *Common) object(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": veleroAPI, "kind": kind}}
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	return u
}

// backupSpec is what a Backup is to hold, and what a Schedule makes Backups of.
func (o *Saving) backupSpec(of cluster) map[string]any {
	included := o.Resources
	if len(included) == 0 {
		included = resources(of, o.EtcdSnapshot)
	}
	spec := map[string]any{
		"includedNamespaces": o.namespaces(),
		"includedResources":  list(included),
		"storageLocation":    o.Location,
		"ttl":                o.TTL.String(),
	}
	if o.EtcdSnapshot {
		spec["excludedResources"] = []any{}
		spec["itemOperationTimeout"] = "4h0m0s"
		spec["snapshotMoveData"], spec["defaultVolumesToFsBackup"], spec["snapshotVolumes"] = false, false, false
	} else {
		spec["csiSnapshotTimeout"] = "10m0s"
		spec["snapshotMoveData"], spec["defaultVolumesToFsBackup"], spec["snapshotVolumes"] = o.MoveData, o.FilesOfVolumes, true
		spec["dataMover"] = "velero"
	}
	if of.platform == hyperv1.KubevirtPlatform {
		spec["labelSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": labelBootImage, "operator": "DoesNotExist"}}}
		spec["resourcePolicy"] = map[string]any{"kind": "configmap", "name": policyName(o.ClusterName, o.ClusterNamespace)}
	}
	return spec
}

// backup is the Backup.
func (o *BackupOptions) backup(of cluster) *unstructured.Unstructured {
	u := o.object("Backup")
	u.SetLabels(map[string]string{labelLocation: o.Location})
	u.Object["spec"] = o.backupSpec(of)
	return u
}

// schedule is the Schedule; cron has five fields.
func (o *ScheduleOptions) schedule(of cluster, cron string) *unstructured.Unstructured {
	u := o.object("Schedule")
	u.SetLabels(map[string]string{labelLocation: o.Location, labelHostedCluster: o.ClusterName, labelHostedClusterNamespace: o.ClusterNamespace})
	u.Object["spec"] = map[string]any{
		"schedule": cron, "paused": o.Paused, "useOwnerReferencesInBackup": o.OwnerReferences, "skipImmediately": o.SkipImmediately,
		"template": o.backupSpec(of),
	}
	return u
}

// restore is the Restore.
func (o *RestoreOptions) restore() *unstructured.Unstructured {
	u := o.object("Restore")
	spec := map[string]any{
		"includedNamespaces": o.namespaces(), "excludedResources": list(excluded(o.EtcdSnapshot)), "existingResourcePolicy": o.Policy,
		"preserveNodePorts": o.NodePorts, "restorePVs": o.Volumes && !o.EtcdSnapshot,
	}
	if o.FromBackup != "" {
		spec["backupName"] = o.FromBackup
	} else {
		spec["scheduleName"] = o.FromSchedule
	}
	if o.EtcdSnapshot {
		spec["cleanupBeforeRestore"] = "CleanupRestored"
		if o.FromBackup != "" {
			// Fields of the cluster manager's own restores; Velero's definition doesn't have them and drops them.
			for _, field := range []string{"veleroManagedClustersBackupName", "veleroCredentialsBackupName", "veleroResourcesBackupName"} {
				spec[field] = o.FromBackup
			}
		}
	}
	u.Object["spec"] = spec
	return u
}

// policy is the ConfigMap by which Velero leaves out the claims with boot images.
func (o *Common) policy() (*unstructured.Unstructured, error) {
	text, err := yaml.Marshal(map[string]any{"version": "v1", "volumePolicies": []any{map[string]any{
		"conditions": map[string]any{"pvcLabels": map[string]any{labelBootImage: "true"}},
		"action":     map[string]any{"type": "skip"},
	}}})
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"policies.yaml": string(text)}}}
	u.SetNamespace(o.Namespace)
	u.SetName(policyName(o.ClusterName, o.ClusterNamespace))
	return u, nil
}
