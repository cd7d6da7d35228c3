// Package capacity decides which hosted control planes may start: those that find all their room on the nodes of the management cluster,
// first come first served. It is pure; the hypershift-operator feeds it.
//
//	World    nodes with what is free on them, pods that wait for a place, control planes that were admitted, and the queue
//	Decide   a Verdict for each of the queue
//
// A control plane is admitted when every one of its pods finds a place, whichever node the scheduler picks for each and in whatever order
// they come, with room for everything that was admitted before it and has not been scheduled yet (its reservation). So one that was
// admitted can always finish. On one node that is a sum. On several it is stricter than one: free room that is scattered over nodes counts
// only where it can't be used up by pods that would have had a place elsewhere.
//
// Nobody overtakes: behind a control plane that waits, all that could use the same nodes wait, too, so that a large one is not starved by
// small ones. Left out of this are control planes that would not fit if no other hosted cluster were there: they may wait for ever.
package capacity
