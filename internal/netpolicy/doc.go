// Package netpolicy renders the network policies of a control-plane namespace.
//
// Together they let in what serves users and nodes, and nothing else from other namespaces: once one policy selects a pod, what no policy
// allows is dropped. They matter only where the network plugin of the management cluster enforces policies.
package netpolicy
