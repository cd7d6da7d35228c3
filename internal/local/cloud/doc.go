// Package cloud is what a cloud provider would be to the local management cluster: volumes and load balancers.
//
// A load balancer is an address of its own that kube-proxy answers for; a volume is a folder in the state folder. Both
// controllers are level-triggered: what they know is what the API server holds and, for volumes, which folders exist.
package cloud
