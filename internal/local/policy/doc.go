// Package policy enforces NetworkPolicies among the pods of the local management cluster, in the packet filter of the machine.
//
// Rules is the whole decision: pods, namespaces and policies in, a set of nftables rules out. Run keeps the kernel's rules equal to it; they are replaced in one
// transaction, and stay when the process that made them ends.
//
// A pod counts from when its kubelet has told its address, so for a moment a new pod is neither held back nor let in where only some are. Connections that are
// there stay when policies change. What the machine itself sends to pods always passes, as with every network; what a pod sends to the machine is egress like any
// other. Only IPv4 gets from pod to pod at all.
package policy
