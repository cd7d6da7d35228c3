package version

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// OldestManagement is the oldest minor version of Kubernetes that a management cluster may have: the first that serves ValidatingAdmissionPolicies as
// stable, on which rules of the installation rest.
const OldestManagement = "1.30"

// CompareManagement judges the Kubernetes of a management cluster: "v1.36.3".
func CompareManagement(kubernetes string) Skew {
	v, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return Skew{Undetermined, fmt.Sprintf("the management cluster's version %.60q is no version of Kubernetes", kubernetes)}
	}
	if v.LessThan(version.MustParseGeneric(OldestManagement)) {
		return Skew{Unsupported, fmt.Sprintf("the management cluster has Kubernetes %d.%d: upgrade it to %s or newer", v.Major(), v.Minor(), OldestManagement)}
	}
	return Skew{Supported, fmt.Sprintf("the management cluster has Kubernetes %d.%d; %s or newer is supported", v.Major(), v.Minor(), OldestManagement)}
}
