// Package names makes names that several programs have to agree on.
package names

import "strings"

// ControlPlaneNamespace is where the control plane of a HostedCluster runs: "{namespace}-{name}", dots in name replaced by dashes. It is not
// injective: ("a-b", "c") and ("a", "b-c") give the same result, so who writes there looks at the namespace's annotation first.
func ControlPlaneNamespace(hostedClusterNamespace, hostedClusterName string) string {
	return hostedClusterNamespace + "-" + strings.ReplaceAll(hostedClusterName, ".", "-")
}
