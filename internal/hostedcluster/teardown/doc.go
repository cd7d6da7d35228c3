// Package teardown takes away what was made for a HostedCluster. It is called again and again: each time it observes what is left, plans the next
// move, and carries it out, until nothing is left and Sweep removes what lies outside the control-plane namespace. NodePools go first, then the
// Cluster of Cluster API and the HostedControlPlane, then the namespace. What nobody else cleans up any more is waited for only for a while.
package teardown
