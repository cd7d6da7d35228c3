package v1beta1

// Annotations of HostedClusters that say in which API groups the objects of Cluster API are stored.
const (
	// PrivateCAPITypesAnnotation is "true" on a HostedCluster whose objects are stored in *.cluster.hypershift.openshift.io; copied to its
	// HostedControlPlane and noted on its NodePools. The hypershift-operator sets it when it takes a HostedCluster on. Without it they are in
	// *.cluster.x-k8s.io.
	PrivateCAPITypesAnnotation = "hypershift.openshift.io/private-capi-types"

	// LegacyScope is the value of HostedClusterScopeAnnotation by which an operator for private types leaves a HostedCluster whose objects
	// are stored in the standard groups to the operator in Deployment operator-legacy.
	LegacyScope = "legacy"

	// PrivateCAPIMigrationInProgressAnnotation is "true" on a HostedCluster whose objects are being moved: no operator works on it.
	PrivateCAPIMigrationInProgressAnnotation = "hypershift.openshift.io/migration-in-progress"

	// PrivateCAPIMigrationFailedAnnotation is the reason for which a move was taken back; whoever removed it asks for another try.
	PrivateCAPIMigrationFailedAnnotation = "hypershift.openshift.io/migration-failed"
)

// PrivateCAPITypes is a condition of HostedClusters, set where the hypershift-operator was installed for private types: True while the objects of
// Cluster API are stored in HyperShift's own groups, False while they are stored in the standard ones.
const PrivateCAPITypes = "PrivateCAPITypes"

// Reasons of condition PrivateCAPITypes.
const (
	// PrivateTypesInUseReason: nothing is to be done.
	PrivateTypesInUseReason = "PrivateTypesInUse"
	// AwaitingMigrationReason: the hosted cluster is older than private types and is looked after by Deployment operator-legacy.
	AwaitingMigrationReason = "AwaitingMigration"
	// MigrationFailedReason: annotation migration-failed has the reason.
	MigrationFailedReason = "MigrationFailed"
	// ForeignScopeReason: the hosted cluster belongs to an operator with another scope.
	ForeignScopeReason = "ForeignScope"
	// MigratingReason: the objects are being moved.
	MigratingReason = "Migrating"
)
