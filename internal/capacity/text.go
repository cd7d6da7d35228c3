package capacity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxNodes bounds how many nodes a message lists.
const maxNodes = 5

// Format is an amount with its unit, such as 250m CPU or 1.5Gi memory.
func Format(name corev1.ResourceName, n int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String() + " CPU"
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return bytes(n) + " " + string(name)
	}
	return fmt.Sprintf("%d %s", n, name)
}

// bytes is a number of bytes in Mi below 10 Gi and in Gi from there, rounded down: nobody decides by less, and a message that changes with
// every byte is written again and again.
func bytes(n int64) string {
	const mi, gi = 1 << 20, 1 << 30
	if n > -10*gi && n < 10*gi {
		return fmt.Sprintf("%dMi", n/mi)
	}
	return fmt.Sprintf("%dGi", n/gi)
}

// Text lists CPU and memory, and whatever else is asked for that is not everywhere.
func Text(a Amounts) string {
	var parts []string
	for _, name := range sortedNames(a) {
		if n := a[name]; n != 0 && name != corev1.ResourcePods {
			parts = append(parts, Format(name, n))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// sortedNames has CPU and memory first.
func sortedNames(a Amounts) []corev1.ResourceName {
	names := slices.Sorted(maps.Keys(a))
	slices.SortStableFunc(names, func(a, b corev1.ResourceName) int { return rank(a) - rank(b) })
	return names
}

func rank(name corev1.ResourceName) int {
	switch name {
	case corev1.ResourceCPU:
		return 0
	case corev1.ResourceMemory:
		return 1
	}
	return 2
}

// Message says why a control plane waits, what for, and what a person can do.
func (v Verdict) Message(closed int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The control plane needs %s. ", Text(v.Needed))
	shown := Amounts{}
	for name := range v.Needed {
		if name != corev1.ResourcePods {
			shown[name] = max(v.Free[name], 0)
		}
	}
	fmt.Fprintf(&b, "Free: %s", Text(shown))
	if list := v.nodes(); list != "" {
		b.WriteString(" (" + list + ")")
	}
	if kept := v.reserved(); kept != "" {
		fmt.Fprintf(&b, ", of which %s is kept for pods that came before", kept)
	}
	if v.Unsuited+closed > 0 {
		fmt.Fprintf(&b, "; %d more nodes can't be used: not ready, cordoned, tainted or not selected", v.Unsuited+closed)
	}
	b.WriteString(". ")
	if v.Lack != "" {
		fmt.Fprintf(&b, "Why it doesn't fit: %s. ", v.Lack)
	}
	fmt.Fprintf(&b, "It is number %d of %d in the queue", v.Place, v.Of)
	if v.Behind != "" {
		fmt.Fprintf(&b, ", behind HostedCluster %s", v.Behind)
	}
	b.WriteString(", and starts by itself when there is room: ")
	if v.Hopeless {
		b.WriteString("add nodes, since it would not fit if no other hosted cluster were there, or lower its requests by annotation")
	} else {
		b.WriteString("add a node, or destroy a hosted cluster that is not needed")
	}
	return b.String()
}

// MachineMessage says why a machine waits, beginning as the scheduler would.
func (v Verdict) MachineMessage(closed int) string {
	short := "Insufficient room"
	for _, name := range sortedNames(v.Needed) {
		if v.Free[name]-v.Reserved[name] < v.Needed[name] {
			short = "Insufficient " + string(name)
			break
		}
	}
	text := fmt.Sprintf("%s: it needs %s; free is %s", short, Text(v.Needed), v.nodes())
	if v.nodes() == "" {
		text = fmt.Sprintf("%s: it needs %s, and no node suits it", short, Text(v.Needed))
	}
	if kept := v.reserved(); kept != "" {
		text += ", of which " + kept + " is kept for control planes and pods that came before"
	}
	if closed > 0 {
		text += fmt.Sprintf("; %d nodes are not ready or cordoned", closed)
	}
	return text
}

func (v Verdict) reserved() string {
	shown := Amounts{}
	for name := range v.Needed {
		if v.Reserved[name] > 0 {
			shown[name] = v.Reserved[name]
		}
	}
	if text := Text(shown); text != "nothing" {
		return text
	}
	return ""
}

func (v Verdict) nodes() string {
	var parts []string
	for _, n := range v.Nodes[:min(maxNodes, len(v.Nodes))] {
		parts = append(parts, fmt.Sprintf("%s %s and %s", n.Object.Name, Format(corev1.ResourceCPU, max(n.Free[corev1.ResourceCPU], 0)), Format(corev1.ResourceMemory, max(n.Free[corev1.ResourceMemory], 0))))
	}
	if more := len(v.Nodes) - maxNodes; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more nodes", more))
	}
	return strings.Join(parts, "; ")
}

// placesKey is the same for pods that may be on the same nodes as far as the nodes decide about that.
func placesKey(pod *corev1.Pod) string {
	var required *corev1.NodeSelector
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	raw, err := json.Marshal([]any{pod.Spec.NodeSelector, required, pod.Spec.Tolerations})
	if err != nil {
		panic(err) // plain data
	}
	return string(raw)
}
