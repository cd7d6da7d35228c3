// Package fleet has the controllers that size and place hosted control planes by themselves, as a managed service wants it. They run in the
// hypershift-operator when EnvSizeTagging is 1.
//
//	Validator  says of the ClusterSizingConfiguration whether its sizes make sense, and makes one where there is none
//	Sizer      gives each HostedCluster its size: three conditions, and then the label
//	Scheduler  gives each what follows from its size: annotations, which the hypershift-operator hands on to the control plane
//
// What is decided is in package sizing.
package fleet

// EnvSizeTagging is the variable that switches sizes on, when it is 1.
const EnvSizeTagging = "ENABLE_SIZE_TAGGING"

// Names of the controllers, as logs and metrics show them.
const (
	sizerName     = "hostedclustersizing"
	validatorName = "hostedclustersizingvalidator"
	schedulerName = "hostedclusterscheduler"
)
