package desired

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
)

// CAPIRole is of all hosted clusters together.
func CAPIRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: capiClusterRole, Labels: map[string]string{names.OwnedByLabel: names.HypershiftOperator}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"},
		}},
	}
}

// CAPIRoleBinding gives CAPIRole to the Cluster API programs of one hosted cluster.
func CAPIRoleBinding(hc *hyperv1.HostedCluster) *rbacv1.ClusterRoleBinding {
	ns := names.NamespaceOf(hc)
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: capiClusterRoleBinding(ns), Labels: map[string]string{names.OwnerNamespaceLabel: hc.Namespace, names.OwnerNameLabel: hc.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: capiClusterRole},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: clusterapi.Name},
			{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: capiprovider.Name},
		},
	}
}

// Cluster-scoped rights of the Cluster API programs: to find out which version of a kind follows which version of the contract.
const capiClusterRole = "hypershift-cluster-api"

func capiClusterRoleBinding(hcpNamespace string) string {
	return "hypershift-cluster-api-" + hcpNamespace
}
