// Package simulate answers where pods would fit: on nodes that there are, and on nodes that could be made.
//
// It knows of a scheduler's required rules those that decide about the number of nodes: requests, node selectors and required node
// affinity, taints, host ports, required affinity and anti-affinity between pods, and topology spread with DoNotSchedule. It does not
// know preferences, volumes that are bound to nodes, and claims of devices; a pod that waits for one of these is taken for one that
// fits. Who asks must therefore count nodes that are already on their way, or each question would add another one.
//
// It does no input or output, and its time grows with the number of pods times the number of nodes.
package simulate
