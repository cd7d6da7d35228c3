package machine

// Variables by which the hypershift-operator, which deploys an infrastructure provider of ours, says how the pods that machines are shall be
// scheduled. They are no flags: the provider is the release's, and one that was built before this knows none of them.
const (
	// EnvPriorityClass names the PriorityClass; empty: the management cluster's default, for there may be no class for machines.
	EnvPriorityClass = "MACHINE_PRIORITY_CLASS"
	// EnvSchedulingGate names a scheduling gate that pods of machines are made with, and that the hypershift-operator takes off when there is
	// room for them; empty: none.
	EnvSchedulingGate = "MACHINE_SCHEDULING_GATE"
)

// RoomGate is the scheduling gate of pods of machines.
const RoomGate = "hypershift.openshift.io/room"

// WaitingForRoomAnnotation on a pod behind RoomGate says, for people, what there is no room for.
const WaitingForRoomAnnotation = "hypershift.openshift.io/waiting-for-room"
