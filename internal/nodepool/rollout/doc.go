// Package rollout decides when the machines of a NodePool have to change.
//
// The decision is a hash over what users wrote: the release, their configuration and the settings of the HostedCluster that reach
// machines. What this product adds to the configuration of machines is not in it, so that an upgrade of the product changes no machine by
// itself; new machines get what is new.
package rollout
