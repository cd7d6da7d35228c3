// Package fleet contains the controllers that size and place hosted control planes automatically, as managed services need it. They run in the
// hypershift-operator when EnvSizeTagging is 1.
//
//	Validator  reports whether the sizes of the ClusterSizingConfiguration are valid, and creates one if there is none
//	Sizer      assigns each HostedCluster its size: three conditions, and then the label
//	Scheduler  applies the effects of the size: annotations, which the hypershift-operator passes on to the control plane
//	Warmer     keeps placeholders for pairs of nodes that clusters of the future take
//	Retirer    runs where sizes, or nodes of single clusters, are switched off, and says so in conditions
//
// Package sizing makes the decisions.
package fleet

// EnvSizeTagging is the variable that switches sizes on, when it is 1.
const EnvSizeTagging = "ENABLE_SIZE_TAGGING"

// Names of the controllers, as logs and metrics show them.
const (
	sizerName     = "hostedclustersizing"
	validatorName = "hostedclustersizingvalidator"
	schedulerName = "hostedclusterscheduler"
)
