// Package contract contains what two programs agree on and neither may change alone. Every other package may import it. Its subpackages define
// names, keys, formats and decisions, and import nothing of ours except the API, each other, and the ground floor; a package that needs one of them
// doesn't have to import the program on the other side.
//
//	auditlogs      audit logs that outlive the Pods of API servers
//	backups        keys of Secrets, annotations and places in pods of backups and restores
//	capiproxy      the proxy beside programs that use Cluster API: its container, and the environment that points to it
//	certsigner     signers of a control plane's certificates, and the permissions of who signs
//	hostnames      by which names control planes are reached, and whose one is that several hosted clusters ask for
//	images         which images of a release operators pass on to each other
//	metricsets     which metrics of a component belong to which set
//	names          objects, labels and keys in control-plane namespaces
//	nodeconfig     what users write into spec.config of a NodePool, and its serialised form
//	nodetrust      which authorities nodes are to trust while these are replaced
//	payload        names, capabilities and settings on both sides of an OpenShift payload
//	releaseimage   which of its two releases a control plane runs
//	removal        when what a hosted cluster has in a cloud is gone, or was given up
//	rolls          why the machines of a NodePool were replaced
//	scope          which operator works on a hosted cluster
//	scraping       which Prometheus may ask for metrics
//	token          the Secrets with which machines boot
//	upgrades       control planes that go back to their last good release
package contract
