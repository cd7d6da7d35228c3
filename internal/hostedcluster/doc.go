// Package hostedcluster makes a control plane of a HostedCluster, keeps it as the user wants it, and takes it away again.
//
// A pass of the Reconciler:
//
//	observe   HostedCluster, HostedControlPlane, namespace, NodePools, referenced Secrets and ConfigMaps, the release: a state.Observed
//	plan      conditions and status, by package status, and a list of steps; pure
//	apply     the steps: critical ones decide whether later ones run, see package step
//	report    one status patch, with ReconciliationSucceeded from the outcome
//
// What it makes, in the control-plane namespace "{namespace}-{name}": the HostedControlPlane, copies of the Secrets and ConfigMaps that the
// spec refers to, network policies, and the control-plane-operator, which does the rest. It publishes kubeconfigs back beside the
// HostedCluster.
//
// Rooms: management is what it has to know of the management cluster, metrics its metrics, sources the user's Secrets and ConfigMaps,
// validate the mistakes in a spec, admission the queue of control planes that wait for room, capi the objects of Cluster API and where they are stored,
// recovery the replacement of members of etcd, state what a pass observes, status what the HostedCluster says of itself, desired the objects that are made,
// comeback the way back from an upgrade that fails, elsewhere the policies of machines in other clusters, adoption what a hosted cluster is taken on with,
// step the parts of a plan and their writer, watches what the operator caches and wakes for, cloud the program for clouds, teardown the removal of all that was made,
// migration the move of its objects between the groups of Cluster API. The command is here, as in every room of controllers: it fills in a Reconciler from
// flags, environment and the management cluster, and its tests play whole operators in the world of the Reconciler's.
//
// Gates. Before anything is written, the spec has to pass validation (ValidConfiguration), the platform has to be supported
// (SupportedHostedCluster), the release has to be readable and in the supported range (ValidReleaseImage), and an upgrade has to be allowed.
// A closed gate leaves everything as it is; it is tried again when an object it depends on changes, and from time to time.
//
// Deletion runs the other way round, see package teardown: what owns things outside the namespace goes first, the namespace last.
package hostedcluster
