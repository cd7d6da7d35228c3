// Package spot has machines replaced that the cloud is about to take away.
//
// A termination handler in the control plane hears of it from the cloud and taints the Node. Then this controller asks for the remediation of its Machine, if that
// was made to be taken away: the health check of such machines and its MachineSet delete it and make another. It goes from Machines to Nodes and never the other way,
// so a hosted cluster can give up machines of its own that may go at any time, and no others.
package spot

import "time"

const (
	// Controller is the name of the controller.
	Controller = "spot-remediation"
	// taintPrefix is that of the termination handler's taints.
	taintPrefix = "aws-node-termination-handler/"
	// interval is how often the Node of such a machine is looked at. AWS gives notice two minutes before.
	interval = 15 * time.Second
	// timeout bounds reading one Node and writing one Machine.
	timeout = 10 * time.Second
)
