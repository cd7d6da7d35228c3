// Package nodetrust has every node of a hosted cluster trust what the control plane's ConfigMap node-trust says, and reports when all do.
//
//	ConfigMap node-trust ──▶ DaemonSet kube-system/node-trust ──▶ files of each node, kubelet started anew ──▶ pod is Ready
//	                                                                                                            │
//	condition NodesTrustAuthorities ◀── judge (pure): every Node has a Ready pod with the present hash ◀────────┘
//
// That a pod is Ready is said by the kubelet itself, with the files that it has by then: a kubelet that does not trust the API server says nothing. A node
// can only speak for its own pods, so one that lies harms itself alone. The DaemonSet has no token and no rights. It is there from the first replacement of
// an authority on.
package nodetrust
