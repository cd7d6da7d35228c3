package machine

// Variables by which the hypershift-operator, which deploys an infrastructure provider of ours, says how the pods that machines are shall be
// scheduled. They are no flags: the provider is the release's, and one that was built before this knows none of them.
const (
	// EnvPriorityClass names the PriorityClass; empty: the management cluster's default, for there may be no class for machines.
	EnvPriorityClass = "MACHINE_PRIORITY_CLASS"
)
