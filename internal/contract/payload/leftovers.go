package payload

import (
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Leftover is an object that an older release, or one outside of hosted clusters, had in the cluster.
type Leftover struct{ APIVersion, Kind, Namespace, Name string }

func deployments(namespace string, names ...string) (list []Leftover) {
	for _, name := range names {
		list = append(list, Leftover{"apps/v1", "Deployment", namespace, name})
	}
	return list
}

// GuestStorage says whether the storage operators run in the hosted cluster itself.
func GuestStorage(hcp *hyperv1.HostedControlPlane) bool {
	return hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform || hcp.Spec.Platform.Type == hyperv1.PowerVSPlatform
}

// Leftovers are what is deleted from the hosted cluster: by its cluster-version-operator, and by the hosted-cluster-config-operator, which does it for
// clusters whose manifests were read before they named it.
func Leftovers(hcp *hyperv1.HostedControlPlane) []Leftover {
	list := slices.Concat(
		[]Leftover{{"policy/v1", "PodDisruptionBudget", "openshift-operator-lifecycle-manager", "packageserver-pdb"}},
		deployments("openshift-network-operator", "network-operator"),
		[]Leftover{{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "default-account-cluster-network-operator"}},
		deployments("openshift-cluster-node-tuning-operator", "cluster-node-tuning-operator"),
		deployments("openshift-image-registry", "cluster-image-registry-operator"),
	)
	if GuestStorage(hcp) {
		return list
	}
	for _, plural := range []string{"machineconfigs", "machineconfigpools"} {
		list = append(list, Leftover{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural + ".machineconfiguration.openshift.io"})
	}
	return slices.Concat(list,
		deployments("openshift-cluster-storage-operator", "cluster-storage-operator", "csi-snapshot-controller-operator", "csi-snapshot-controller"),
		deployments("openshift-cluster-csi-drivers", "aws-ebs-csi-driver-operator", "aws-ebs-csi-driver-controller"),
		deployments("openshift-kube-storage-version-migrator-operator", "kube-storage-version-migrator-operator"),
		deployments("openshift-kube-storage-version-migrator", "migrator"),
	)
}
