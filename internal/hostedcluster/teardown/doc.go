// Package teardown removes what was created for a HostedCluster. It is called again and again: each time it observes what is left, plans the next
// step, and carries it out, until nothing is left and Sweep removes what is outside the control-plane namespace. NodePools are deleted first, then
// the Cluster of Cluster API and the HostedControlPlane, then the namespace. It waits only for a limited time for what nothing else cleans up any more.
package teardown
