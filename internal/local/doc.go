// Package local brings up, shows and takes down the local management cluster: a real one, of real parts, in the network
// namespace of one machine.
//
//	up ── preflight ─ packages ─ builds ─ supervisor ─ images ─ add-ons ─ install ─ demo
//	                                          │
//	              supervise (own session, own control group hypershift-local)
//	                ├─ registry, provisioner, load balancers   (in this process)
//	                └─ etcd, kube-apiserver, kube-controller-manager, kube-scheduler, containerd, kubelet, kube-proxy
//
// Every step looks first and changes only what differs, so a second "up" verifies and repairs. "down" goes by what it
// finds (control group, mounts, links, tables), not by what "up" remembers, so it works after any crash.
package local
