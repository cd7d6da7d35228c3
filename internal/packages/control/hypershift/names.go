package hypershift

import (
	"hcp.internal/platform/internal/packages/control/connector"
)

const (
	// nameLabel is on everything that the connector consists of. Nothing else of these kinds is watched.
	nameLabel = "app.kubernetes.io/name"
	// connectorPackage is the Package that the connector is installed by when the operator has an image of its own package.
	connectorPackage = "remote-phase"
	// kubeconfigSecret is published by every hosted control plane, for use inside its namespace.
	kubeconfigSecret = "service-network-admin-kubeconfig"
	kubeconfigKey    = "kubeconfig"
	kubeconfigFolder = "/data"
	// pullSecret is where control planes keep the credentials for their images.
	pullSecret = "pull-secret"
	// uid is the user of the connector where the management cluster assigns none.
	uid = 1001
)

var labels = map[string]string{nameLabel: connector.Name}
