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

	// PrivateCAPIMigrationLockAnnotation names one lock, in the patch that sets PrivateCAPIMigrationInProgressAnnotation: whoever acknowledges it
	// acknowledges none before or after it.
	PrivateCAPIMigrationLockAnnotation = "hypershift.openshift.io/migration-lock"

	// PrivateCAPIMigrationAckAnnotation is the lock that the controller of this object has seen: no pass of it from before is still under way. The
	// operator that looks after a HostedCluster otherwise writes it on that one and on each of its NodePools.
	PrivateCAPIMigrationAckAnnotation = "hypershift.openshift.io/migration-ack"

	// PrivateCAPIMigrateAnnotation is "true" on a HostedCluster that a user wants moved to private types now.
	PrivateCAPIMigrateAnnotation = "hypershift.openshift.io/private-capi-migrate"

	// PrivateCAPIRollbackAnnotation is "true" on a HostedCluster that a user wants moved back to standard types.
	PrivateCAPIRollbackAnnotation = "hypershift.openshift.io/private-capi-rollback"

	// PrivateCAPIHoldAnnotation is "true" on a HostedCluster that must not be moved.
	PrivateCAPIHoldAnnotation = "hypershift.openshift.io/private-capi-hold"

	// PrivateCAPIMovedAnnotation says since when (RFC 3339) the objects have been where they are, on a HostedCluster that was moved.
	PrivateCAPIMovedAnnotation = "hypershift.openshift.io/private-capi-moved"

	// PrivateCAPIMigrationFailedAnnotation is the reason for which a move was taken back; whoever removed it asks for another try.
	PrivateCAPIMigrationFailedAnnotation = "hypershift.openshift.io/migration-failed"
)

// PrivateCAPITypes is a condition of HostedClusters, set where the hypershift-operator was installed for private types: True while the objects of
// Cluster API are stored in HyperShift's own groups, False while they are stored in the standard ones.
const PrivateCAPITypes = "PrivateCAPITypes"

// Conditions of HostedClusters whose objects of Cluster API are moved, set by the migration controller once a move began.
const (
	// PrivateCAPIMigrationProgressing is True while objects are being moved, with the phase as its reason.
	PrivateCAPIMigrationProgressing = "PrivateCAPIMigrationProgressing"
	// PrivateCAPIMigrationDegraded is True while a hosted cluster can neither scale nor heal nor approve certificates of nodes, because its objects are
	// being moved.
	PrivateCAPIMigrationDegraded = "PrivateCAPIMigrationDegraded"
)

// Reasons of the conditions of a move, besides the names of phases.
const (
	MigrationCompletedReason  = "Completed"
	MigrationNotStartedReason = "NotStarted"
	MigrationRolledBackReason = "RolledBack"
	MigrationHeldReason       = "Held"
	// ScalingSuspendedReason: it ends by itself.
	ScalingSuspendedReason = "ScalingSuspended"
)

// Reasons of condition PrivateCAPITypes.
const (
	// PrivateTypesInUseReason: nothing needs to be done.
	PrivateTypesInUseReason = "PrivateTypesInUse"
	// AwaitingMigrationReason: the hosted cluster is older than private types and is managed by Deployment operator-legacy.
	AwaitingMigrationReason = "AwaitingMigration"
	// MigrationFailedReason: annotation migration-failed has the reason.
	MigrationFailedReason = "MigrationFailed"
	// ForeignScopeReason: the hosted cluster belongs to an operator with another scope.
	ForeignScopeReason = "ForeignScope"
	// MigratingReason: the objects are being moved.
	MigratingReason = "Migrating"
)
