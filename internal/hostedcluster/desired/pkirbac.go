package desired

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/certsigner"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/pki"
)

// LabelSignsCSRs is the label of images whose control-plane-pki-operator signs CertificateSigningRequests of the management cluster.
const LabelSignsCSRs = "io.openshift.hypershift.control-plane-pki-operator-signs-csrs"

// PKIOperatorRights are the cluster-scoped rights of the control-plane-pki-operator of this control plane, which only we can grant.
func PKIOperatorRights(hc *hyperv1.HostedCluster, operatorLabels map[string]string) []client.Object {
	_, disabled := hc.Annotations[pki.DisableAnnotation]
	if _, signs := operatorLabels[LabelSignsCSRs]; !signs || disabled {
		return nil
	}
	var objs []client.Object
	rights := certsigner.ClusterRights(names.NamespaceOf(hc))
	for _, name := range slices.Sorted(maps.Keys(rights)) {
		labels := map[string]string{names.OwnerNamespaceLabel: hc.Namespace, names.OwnerNameLabel: hc.Name}
		objs = append(objs,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: rights[name]},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: names.NamespaceOf(hc), Name: names.PKIOperator}},
			})
	}
	return objs
}
