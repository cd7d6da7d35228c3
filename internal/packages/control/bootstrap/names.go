package bootstrap

import "time"

const (
	// packageName is that of the ClusterPackage, its deployment, and of the package itself.
	packageName = "package-operator"
	// managerName is the Deployment that takes over.
	managerName = "package-operator-manager"
	// overridesKey is where the configuration of the package has --image-prefix-overrides.
	overridesKey = "imagePrefixOverrides"
)

const (
	// pollEvery is how often the state of the cluster is looked at.
	pollEvery = 2 * time.Second
	// removalTime is how long the pods of the operator before may take to go.
	removalTime = 2 * time.Minute
	// kindsTime is how long the API server may take to serve new kinds.
	kindsTime = time.Minute
	// pageSize of lists.
	pageSize = 500
)
