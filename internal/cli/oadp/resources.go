package oadp

import (
	"slices"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
)

// base is what each backup of a hosted cluster holds.
var base = []string{
	"serviceaccounts", "roles", "rolebindings", "pods", "persistentvolumeclaims", "persistentvolumes", "configmaps", "priorityclasses", "poddisruptionbudgets",
	"hostedclusters.hypershift.openshift.io", "nodepools.hypershift.openshift.io", "secrets", "services", "deployments", "statefulsets",
	"hostedcontrolplanes.hypershift.openshift.io", "clusters.cluster.x-k8s.io", "machinedeployments.cluster.x-k8s.io", "machinesets.cluster.x-k8s.io",
	"machines.cluster.x-k8s.io", "routes.route.openshift.io", "clusterdeployments.hive.openshift.io",
}

// volumes are what a backup with a snapshot by etcd itself leaves out: data comes back from the snapshot, and programs from reconciliation.
var volumes = []string{"persistentvolumeclaims", "persistentvolumes", "deployments", "statefulsets"}

// byPlatform is what the provider of Cluster API keeps, by platform. A platform that isn't here is treated as AWS.
var byPlatform = map[hyperv1.PlatformType][]string{
	hyperv1.AWSPlatform: {
		"awsclusters.infrastructure.cluster.x-k8s.io", "awsmachinetemplates.infrastructure.cluster.x-k8s.io", "awsmachines.infrastructure.cluster.x-k8s.io"},
	hyperv1.AgentPlatform: {
		"agentclusters.capi-provider.agent-install.openshift.io", "agentmachinetemplates.capi-provider.agent-install.openshift.io",
		"agentmachines.capi-provider.agent-install.openshift.io", "agents.agent-install.openshift.io", "infraenvs.agent-install.openshift.io",
		"nmstateconfigs.agent-install.openshift.io", "baremetalhosts.metal3.io"},
	hyperv1.KubevirtPlatform: {
		"kubevirtclusters.infrastructure.cluster.x-k8s.io", "kubevirtmachinetemplates.infrastructure.cluster.x-k8s.io", "datavolumes.cdi.kubevirt.io"},
	hyperv1.OpenStackPlatform: {
		"openstackclusters.infrastructure.cluster.x-k8s.io", "openstackmachinetemplates.infrastructure.cluster.x-k8s.io",
		"openstackmachines.infrastructure.cluster.x-k8s.io"},
	hyperv1.AzurePlatform: {
		"azureclusters.infrastructure.cluster.x-k8s.io", "azuremachinetemplates.infrastructure.cluster.x-k8s.io", "azuremachines.infrastructure.cluster.x-k8s.io"},
}

// cluster is what has to be known of the hosted cluster.
type cluster struct {
	platform hyperv1.PlatformType
	// private: its objects of Cluster API are in HyperShift's own groups.
	private bool
}

// resources lists what a backup of a hosted cluster holds.
func resources(of cluster, etcdSnapshot bool) []string {
	provider, ok := byPlatform[of.platform]
	if !ok {
		provider = byPlatform[hyperv1.AWSPlatform]
	}
	all := slices.Clone(base)
	if etcdSnapshot {
		all = append(slices.DeleteFunc(all, func(r string) bool { return slices.Contains(volumes, r) }), "namespaces")
	}
	all = append(all, provider...)
	if of.private {
		for i, r := range all {
			if name, group, grouped := strings.Cut(r, "."); grouped && translate.InDomain(group) {
				all[i] = name + "." + translate.Group(group)
			}
		}
	}
	return all
}

// notRestored is what no restore brings back: it belongs to the cluster that the backup was made on.
var notRestored = []string{
	"nodes", "events", "events.events.k8s.io", "backups.velero.io", "restores.velero.io", "resticrepositories.velero.io",
	"csinodes.storage.k8s.io", "volumeattachments.storage.k8s.io", "backuprepositories.velero.io",
}

// excluded lists what a restore leaves out. Without volumes there is nothing of storage to leave out.
func excluded(etcdSnapshot bool) []string {
	if etcdSnapshot {
		return notRestored[:6]
	}
	return notRestored
}
