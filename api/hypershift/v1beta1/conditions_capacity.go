package v1beta1

// The condition of a HostedCluster about room on the nodes of the management cluster, and its reasons. The published API has none for it.
const (
	// ControlPlaneAdmitted is set by the hypershift-operator. True: the control plane may start, or exists. False: it waits, nothing of it
	// is made, and the message says what is needed, what is free on which nodes, and its place in the queue. Available and Progressing have
	// the same reason and message meanwhile. Add nodes, destroy hosted clusters that nobody needs, or lower what it asks for; it starts by
	// itself when there is room. Absent where the operator runs with --control-plane-capacity=Ignore.
	ControlPlaneAdmitted = "ControlPlaneAdmitted"

	// WaitingForCapacityReason: the pods of the control plane do not all fit on the nodes that may run them.
	WaitingForCapacityReason = "WaitingForCapacity"
	// CapacityGrowsReason: the pods do not fit now, but something adds nodes for pending pods, so they are created nevertheless.
	CapacityGrowsReason = "CapacityGrows"
)
