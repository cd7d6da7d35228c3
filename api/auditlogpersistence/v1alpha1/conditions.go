package v1alpha1

// Types of conditions of an AuditLogPersistenceConfig.
const (
	// ConfigValid is True while what the configuration asks for can be carried out.
	ConfigValid = "Valid"
	// ConfigApplied is True when every control plane has what the configuration asks for.
	ConfigApplied = "Applied"
	// SnapshotsPossible is there while snapshots are asked for, and True when the management cluster has them.
	SnapshotsPossible = "SnapshotsPossible"
)

// Reasons of these conditions.
const (
	// InvalidReason: fields contradict each other.
	InvalidReason = "Invalid"
	// StorageMissingReason: there is no such StorageClass.
	StorageMissingReason = "StorageMissing"
	// NoSnapshotsReason: the management cluster doesn't support VolumeSnapshots.
	NoSnapshotsReason = "NoVolumeSnapshots"
	// ApplyingReason: some control planes still have the previous configuration.
	ApplyingReason = "Applying"
	// DisabledReason: spec.enabled is false.
	DisabledReason = "Disabled"
)
