// Package desired renders the objects that a hosted cluster has on the management cluster, from what was observed: namespace, HostedControlPlane, network
// policies, permissions.
package desired
