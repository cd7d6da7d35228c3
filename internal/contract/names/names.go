// Package names makes names that several programs have to agree on.
package names

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ControlPlaneNamespace is where the control plane of a HostedCluster runs: "{namespace}-{name}", dots in name replaced by dashes. It is not
// injective: ("a-b", "c") and ("a", "b-c") give the same result, so who writes there looks at the namespace's annotation first.
func ControlPlaneNamespace(hostedClusterNamespace, hostedClusterName string) string {
	return hostedClusterNamespace + "-" + strings.ReplaceAll(hostedClusterName, ".", "-")
}

// Named is what has a namespace and a name, as a HostedCluster has.
type Named interface {
	GetNamespace() string
	GetName() string
}

// NamespaceOf is the control-plane namespace of a HostedCluster.
func NamespaceOf(hc Named) string { return ControlPlaneNamespace(hc.GetNamespace(), hc.GetName()) }

// BackReference is the value of annotation hypershift.openshift.io/cluster on what was made for a HostedCluster: "{namespace}/{name}".
func BackReference(hc Named) string { return hc.GetNamespace() + "/" + hc.GetName() }

// ParseBackReference is the inverse of BackReference. It is not ok when the text is not of that form.
func ParseBackReference(s string) (_ types.NamespacedName, ok bool) {
	namespace, name, ok := strings.Cut(s, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}

// OwnerNamespaceLabel and OwnerNameLabel on cluster-scoped objects name the HostedCluster, which can't be their owner by reference.
const (
	OwnerNamespaceLabel = "hypershift.openshift.io/owner.namespace"
	OwnerNameLabel      = "hypershift.openshift.io/owner.name"
)
