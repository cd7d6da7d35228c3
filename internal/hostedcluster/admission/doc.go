// Package admission decides when the control plane of a HostedCluster may start: when the nodes of the management cluster have room for all of
// it. Those that wait stand in a Queue, the oldest first; what each asks for is worked out from its components (demand.go), what there is from
// nodes and pods (world.go), and package capacity decides by both. Machines that are pods ask the same queue (machines.go).
package admission
