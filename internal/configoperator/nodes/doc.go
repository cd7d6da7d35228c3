// Package nodes gives new Nodes of a hosted cluster the labels and taints of their Machine, once.
//
// It goes from Machines to Nodes and never the other way: a node may write what it likes into its own annotations, so which
// Machine it is follows from status.nodeRef, which Cluster API sets. A Node that has got its labels is marked and from then on
// its owner's to change.
package nodes

const (
	// Controller is the name of the controller.
	Controller = "node"
	// labelPrefix marks labels of a Machine that are for its Node.
	labelPrefix = "managed.hypershift.openshift.io."
	// maxTaints and maxTaintBytes bound what is read of a Machine's annotation.
	maxTaints, maxTaintBytes = 100, 64 << 10
)
