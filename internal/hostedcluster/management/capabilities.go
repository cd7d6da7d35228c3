package management

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"hcp.internal/platform/internal/operator"
)

// CapabilitiesOf asks the management cluster which optional kinds it serves.
func CapabilitiesOf(mapper meta.RESTMapper) (operator.Capabilities, error) {
	caps := operator.Capabilities{}
	for kind, found := range map[schema.GroupKind]*bool{
		{Group: clusterv1.GroupVersion.Group, Kind: "Cluster"}:               &caps.ClusterAPI,
		{Group: "route.openshift.io", Kind: "Route"}:                         &caps.Routes,
		{Group: "security.openshift.io", Kind: "SecurityContextConstraints"}: &caps.SecurityContextConstraints,
	} {
		_, err := mapper.RESTMapping(kind)
		if err != nil && !meta.IsNoMatchError(err) {
			return caps, err
		}
		*found = err == nil
	}
	return caps, nil
}
