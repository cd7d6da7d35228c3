// Package v1beta1 holds the types of the API group infrastructure.cluster.x-k8s.io of platform Local.
//
// They follow version v1beta2 of Cluster API's contract for infrastructure providers: a LocalCluster stands for where a hosted
// cluster's API is reached, a LocalMachine is a worker, which is a privileged pod of the management cluster, and a
// LocalMachineTemplate is what new LocalMachines are copied from.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1
