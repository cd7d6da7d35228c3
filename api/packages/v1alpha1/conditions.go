package v1alpha1

// Condition types. Conditions of managed objects that were mapped have types with a slash, such as example.com/Ready.
const (
	// ConditionAvailable is True while every object is there and passes its probes. On an ObjectDeployment or Package it is also
	// True while the revision before still is.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while a revision is rolled out.
	ConditionProgressing = "Progressing"
	// ConditionPaused is True while nothing is written because spec says so; Unknown while some phases have not followed yet.
	ConditionPaused = "Paused"
	// ConditionUnpacked says whether the image of a Package was read.
	ConditionUnpacked = "Unpacked"
	// ConditionInvalid is True while a Package can't be installed as it is.
	ConditionInvalid = "Invalid"
	// ConditionArchived is True once an old revision has given up its objects.
	ConditionArchived = "Archived"
	// ConditionDeleting is True on a revision whose deletion takes long; the message says what it waits for.
	ConditionDeleting = "Deleting"
	// ConditionSucceeded is True once a revision was available with all of its objects. It never goes back.
	ConditionSucceeded = "Succeeded"
	// ConditionInTransition is True while some objects of a revision are not, or no longer, its own.
	ConditionInTransition = "InTransition"
	// ConditionTemplateInvalid is True while an ObjectTemplate has no result.
	ConditionTemplateInvalid = "package-operator.run/Invalid"
	// ConditionHasPausedPackage is True while a Package of a HostedClusterPackage is paused.
	ConditionHasPausedPackage = "HasPausedPackage"
	// ConditionEnvironmentOutdated is True while a Package that a HostedClusterPackage controls waits for its turn to be rendered for another environment.
	ConditionEnvironmentOutdated = "EnvironmentOutdated"
	// ReasonEnvironmentChanged is its reason.
	ReasonEnvironmentChanged = "EnvironmentChanged"
	// ConditionRemovalHeld is True while a HostedClusterPackage selects so few of the hosted clusters that have a Package of it that removing the others'
	// needs to be confirmed, with RolloutRemoveAnnotation. It is absent otherwise.
	ConditionRemovalHeld = "RemovalHeld"
)

// Condition reasons.
const (
	ReasonAvailable                    = "Available"
	ReasonObjectSetUnready             = "ObjectSetUnready"
	ReasonProgressing                  = "Progressing"
	ReasonLatestRevisionPendingSuccess = "LatestRevisionPendingSuccess"
	ReasonIdle                         = "Idle"
	ReasonPaused                       = "Paused"
	ReasonPartiallyPaused              = "PartiallyPaused"
	ReasonProbeFailure                 = "ProbeFailure"
	ReasonPreflightError               = "PreflightError"
	ReasonCollisionDetected            = "CollisionDetected"
	ReasonInTransition                 = "InTransition"
	ReasonRolloutSuccess               = "RolloutSuccess"
	ReasonArchived                     = "Archived"
	ReasonArchivalInProgress           = "ArchivalInProgress"
	ReasonWaitingForObjects            = "WaitingForObjects"
	ReasonImagePullBackOff             = "ImagePullBackOff"
	ReasonUnpackSuccess                = "UnpackSuccess"
	ReasonAlreadyUnpacked              = "AlreadyUnpacked"
	ReasonLoadError                    = "LoadError"
	ReasonConstraintsFailed            = "ConstraintsFailed"
	ReasonSourceError                  = "SourceError"
	ReasonTemplateError                = "TemplateError"
	// ReasonTargetUnreachable says that the cluster of a phase's objects does not answer. It is tried again by itself.
	ReasonTargetUnreachable = "TargetUnreachable"
	// ReasonTargetUnauthorized says that the cluster of a phase's objects refuses the credentials; see the Secret with the kubeconfig.
	ReasonTargetUnauthorized = "TargetUnauthorized"
	// ReasonTargetMisbehaves says that the cluster of a phase's objects answers what no API server should.
	ReasonTargetMisbehaves = "TargetMisbehaves"
)
