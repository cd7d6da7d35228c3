package desired

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/state"
)

// kubevirtCSIAccount is the ServiceAccount of the storage driver that OpenShift releases bring for KubeVirt.
const kubevirtCSIAccount = "kubevirt-csi"

// KubeVirtStorageRights let the storage driver of a hosted cluster on KubeVirt look at the management cluster's volumes behind those of virtual machines,
// which only we can grant. With a kubeconfig of another cluster the driver has its rights there.
func KubeVirtStorageRights(obs *state.Observed) []client.Object {
	platform := obs.HC.Spec.Platform
	if platform.Type != hyperv1.KubevirtPlatform || obs.Target == nil || obs.Target.Kubernetes {
		return nil
	}
	if k := platform.Kubevirt; k != nil && (k.Credentials != nil || k.StorageDriver != nil && k.StorageDriver.Type == hyperv1.NoneKubevirtStorageDriverConfigType) {
		return nil
	}
	ns := names.NamespaceOf(obs.HC)
	meta := metav1.ObjectMeta{Name: ns + "-kubevirt-csi-cluster", Labels: map[string]string{names.OwnerNamespaceLabel: obs.HC.Namespace, names.OwnerNameLabel: obs.HC.Name}}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: *meta.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: kubevirtCSIAccount}},
		},
	}
}
