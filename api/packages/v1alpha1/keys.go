package v1alpha1

// Labels.
const (
	// CacheLabel is "True" on every object that the package operator manages or watches. It watches nothing without it.
	CacheLabel      = "package-operator.run/cache"
	CacheLabelValue = "True"
	// PackageLabel is the name in the manifest of the package that an object comes from.
	PackageLabel = "package-operator.run/package"
	// InstanceLabel is the name of the Package or ClusterPackage that an object comes from.
	InstanceLabel = "package-operator.run/instance"
	// PhaseClassLabel is the class of an ObjectSetPhase; the controller of that class works on it.
	PhaseClassLabel = "package-operator.run/phase-class"
	// ObjectDeploymentLabel is the name of the ObjectDeployment that an ObjectSet or ObjectSetPhase is a revision of.
	ObjectDeploymentLabel = "package-operator.run/object-deployment"
	// SliceOwnerLabel is the name of the ObjectDeployment that an ObjectSlice was made for.
	SliceOwnerLabel = "slices.package-operator.run/owner"
)

// Annotations of objects in the cluster.
const (
	// OwnersAnnotation lists owners where owner references can't be used: in another cluster or namespace.
	OwnersAnnotation = "package-operator.run/owners"
	// RevisionAnnotation is the revision of the ObjectSet that wrote an object, in decimal.
	RevisionAnnotation = "package-operator.run/revision"
	// HashAnnotation is the hash of the template that an ObjectSet was made from.
	HashAnnotation = "package-operator.run/hash"
	// PausedByParentAnnotation is "true" on an ObjectSet that is paused because its ObjectDeployment is.
	PausedByParentAnnotation = "package-operator.run/paused-by-parent"
	// PackageSourceImageAnnotation is the image that an ObjectDeployment was unpacked from.
	PackageSourceImageAnnotation = "package-operator.run/package-source-image"
	// PackageSourceDigestAnnotation is the digest that this image had then: what is rendered again when the cluster's environment alone has changed.
	PackageSourceDigestAnnotation = "package-operator.run/package-source-digest"
	// PackageConfigAnnotation is the configuration of the Package that an ObjectDeployment was rendered with, as JSON.
	PackageConfigAnnotation = "package-operator.run/package-config"
	// ChangeCauseAnnotation says why a revision exists.
	ChangeCauseAnnotation = "kubernetes.io/change-cause"
	// PauseMessageAnnotation is what whoever paused a Package had to say.
	PauseMessageAnnotation = "package-operator.run/pause-message"
	// ChunkingStrategyAnnotation on a Package chooses how large phases are cut into slices: NoOp, EachObject or BinpackNextFit.
	ChunkingStrategyAnnotation = "packages.package-operator.run/chunking-strategy"
)

// Annotations of a HostedClusterPackage that ask for more than its fields can. All are off by default.
const (
	// RolloutSoakAnnotation is a duration, as "10m": how long a group has to stay done before the next one starts.
	RolloutSoakAnnotation = "package-operator.run/rollout-soak"
	// RolloutDeadlineAnnotation is a duration: how long after its change a Package may be down before it counts as failed.
	RolloutDeadlineAnnotation = "package-operator.run/rollout-deadline"
	// RolloutOnFailureAnnotation is "hold" (default), "return-cluster" or "return-group": what to do with a failed Package. Needs the deadline.
	RolloutOnFailureAnnotation = "package-operator.run/rollout-on-failure"
	// RolloutPausedAnnotation is "true" while no Package is to be changed. Those of new clusters are made all the same.
	RolloutPausedAnnotation = "package-operator.run/rollout-paused"
	// RolloutRemoveAnnotation is a number: how many Packages of hosted clusters that are no longer selected may be removed at once, when that is more than
	// half of all of them.
	RolloutRemoveAnnotation = "package-operator.run/rollout-remove"
)

// RolloutEnvironmentAnnotation of a Package that a HostedClusterPackage controls holds the hash of the environment that it is to be rendered for. A change
// of the environment alone reaches such a Package only in its turn, so that an upgrade of the management cluster doesn't restart an add-on everywhere.
const RolloutEnvironmentAnnotation = "package-operator.run/rollout-environment"

// RolloutReturnedAnnotation of a Package holds the hash of the template that was taken back from it.
const RolloutReturnedAnnotation = "package-operator.run/rollout-returned-from"

// Annotations of objects in package files; none of them reaches the cluster.
const (
	// PhaseAnnotation is the phase that an object belongs to.
	PhaseAnnotation = "package-operator.run/phase"
	// ConditionMapAnnotation maps conditions of an object to conditions of its package, one "Source => prefix/Destination" a line.
	ConditionMapAnnotation = "package-operator.run/condition-map"
	// ConditionAnnotation is a CEL expression; the object is left out when it is false.
	ConditionAnnotation = "package-operator.run/condition"
	// CollisionProtectionAnnotation is the CollisionProtection of an object.
	CollisionProtectionAnnotation = "package-operator.run/collision-protection"
)

// Finalizers.
const (
	// CachedFinalizer is on what manages objects: they are torn down before it goes.
	CachedFinalizer = "package-operator.run/cached"
	// MetricsFinalizer is on what has metrics of its own: they are removed before it goes.
	MetricsFinalizer = "package-operator.run/metrics"
	// OrphanFinalizer is set by the API server on what is deleted without its dependents.
	OrphanFinalizer = "orphan"
)

// FieldOwner is the field manager of everything that the package operator applies.
const FieldOwner = "package-operator"

// DefaultPhaseClass is the class of phases that the package operator itself works on, in an ObjectSetPhase.
const DefaultPhaseClass = "default"
