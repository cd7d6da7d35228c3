// Package autoscaler sizes NodePools with spec.autoScaling: it adds machines for pods that fit nowhere, and removes machines whose pods
// fit elsewhere. It serves Kubernetes releases; OpenShift payloads bring the cluster autoscaler, and both take the same flags.
//
//	observe   the hosted cluster's nodes and pods; MachineDeployments and MachineSets of the control plane's namespace with the
//	          annotations cluster.x-k8s.io/cluster-api-autoscaler-node-group-{min,max}-size; what a machine of each would offer
//	plan      pure: which group grows or shrinks, by how much, and why; package simulate answers what fits where
//	apply     the number of replicas through the scale subresource, only over the version that was read; machines to remove are
//	          marked with cluster.x-k8s.io/delete-machine first
//	report    events on the groups, pods and nodes; ConfigMap kube-system/cluster-autoscaler-status of the hosted cluster
//
// A group stays within its bounds whatever happens: nothing is added at max, nothing removed at min, and what is outside already is the
// NodePool controller's to correct. The number of replicas has two writers that do not fight: the NodePool controller takes over what it
// finds as long as that is within the bounds.
//
// # What keeps it from flapping
//
// Machines that were asked for and are not nodes yet count as if they were there, for spec.autoscaling.maxNodeProvisionTime. A machine is
// removed only when all its pods have been found another place for unneededDurationSeconds without a break, and never soon after one was
// added. What it remembers between passes is since when machines were not needed, and when the last removal was: a restart starts these
// times anew, so it removes later, never sooner.
//
// # What it does not do
//
// spec.autoscaling.maxPodGracePeriod bounds nothing here: Cluster API drains machines, with the pods' own grace periods and the NodePool's
// nodeDrainTimeout. Volumes that are bound to nodes and claims of devices are not understood (see package simulate).
package autoscaler
