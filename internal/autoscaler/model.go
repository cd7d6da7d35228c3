package autoscaler

import (
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Group is a MachineDeployment, or a MachineSet of its own, whose size is ours to choose.
type Group struct {
	Name string // that of the NodePool
	// Object is what was read; its number of replicas is written only over this version.
	Object             client.Object
	Min, Max, Replicas int
	Machines           []Machine
	// Held says why its size must not change now; empty: it may. Settling says why nothing is removed now.
	Held, Settling string
	// Template is what a machine made now would be, without name and pods; nil when unknown, and Unknown says why.
	Template *corev1.Node
	Unknown  string
}

// Machine of a group.
type Machine struct {
	Name    string
	Node    string // empty: it is none yet
	Created time.Time
	// Deleting machines and marked ones are on their way out. Mark is the value of the annotation that marks it.
	Deleting bool
	Mark     string
}

// Observed is everything that a decision looks at.
type Observed struct {
	Groups []Group
	Nodes  []*corev1.Node
	// Running pods have a node, and have not ended.
	Running []*corev1.Pod
	// Pending pods have none, and the scheduler found none.
	Pending    []*corev1.Pod
	DaemonSets []appsv1.DaemonSet
	Budgets    []policyv1.PodDisruptionBudget
	// Priorities of groups by patterns of their names, of the ConfigMap cluster-autoscaler-priority-expander; the highest wins.
	Priorities []Preference
	// Truncated says what was left out because there is too much of it.
	Truncated string
}

// Preference is a priority of groups.
type Preference struct {
	Priority int
	Names    []*regexp.Regexp
}

// Memory is what is kept between passes. Losing it costs time only.
type Memory struct {
	// UnneededSince by the name of the node.
	UnneededSince map[string]time.Time
	LastRemoval   time.Time
	LastFailure   time.Time
}

// Growth is machines to add.
type Growth struct {
	Group    *Group
	From, To int
	Reason   string
	// Pods that they are for; the first few are told.
	Pods []*corev1.Pod
}

// Removal is a machine to remove.
type Removal struct {
	Group         *Group
	Machine, Node string
	Reason        string
}

// Verdict is why a pod causes no growth.
type Verdict struct {
	Pod    *corev1.Pod
	Reason string
}

// Plan is what a pass does and reports. The zero plan does nothing.
type Plan struct {
	Grow   []Growth
	Remove []Removal
	// Unmark are machines that were marked for removal by a pass that went no further.
	Unmark []string
	// Helpless pods fit on no node that could be made.
	Helpless []Verdict
	// Notes say for each group, by its name, what was decided and why.
	Notes map[string]string
	// Idle says why nothing is removed at all; empty: something might be.
	Idle   string
	Memory Memory
}
