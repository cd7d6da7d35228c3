// Package hostedcluster creates the control plane for a HostedCluster, keeps it as the user wants it, and removes it again.
//
// A reconciliation:
//
//	observe   HostedCluster, HostedControlPlane, namespace, NodePools, referenced Secrets and ConfigMaps, the release: a state.Observed
//	plan      conditions and status, by package status, and a list of steps; pure
//	apply     the steps: critical ones decide whether later ones run, see package step
//	report    one status patch, with ReconciliationSucceeded from the outcome
//
// It creates, in the control-plane namespace "{namespace}-{name}": the HostedControlPlane, copies of the Secrets and ConfigMaps that the
// spec references, network policies, and the control-plane-operator, which does the rest. It publishes kubeconfigs beside the
// HostedCluster.
//
// Subpackages:
//
//	adoption    the identity that a hosted cluster gets when the operator adopts it
//	admission   the queue of control planes that wait for room
//	capi        the Cluster API objects, and where they are stored
//	cloud       the program that calls clouds
//	comeback    the way back from a failing upgrade
//	desired     the objects that are created
//	elsewhere   network policies of machines in other clusters
//	management  properties of the management cluster
//	metrics     the metrics of hosted clusters
//	migration   the migration of Cluster API objects between API groups
//	recovery    the replacement of etcd members
//	sources     the user's Secrets and ConfigMaps
//	state       what a reconciliation observes
//	status      what the HostedCluster reports
//	step        the parts of a plan, and the writer that carries them out
//	teardown    the removal of everything that was created
//	validate    mistakes in a spec
//	watches     what the operator caches, and what triggers it
//
// The command is in this package: it fills in a Reconciler from flags, environment and the management cluster, and its tests run whole operators in
// the world of the Reconciler's tests.
//
// Gates. Before anything is written, the spec has to pass validation (ValidConfiguration), the platform has to be supported
// (SupportedHostedCluster), the release has to be readable and in the supported range (ValidReleaseImage), and an upgrade has to be allowed.
// A closed gate leaves everything as it is; it is checked again when an object that it depends on changes, and from time to time.
//
// Deletion runs in reverse order, see package teardown: what owns things outside the namespace is deleted first, the namespace last.
package hostedcluster
