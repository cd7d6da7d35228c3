// Package contract contains what two programs agree on and neither may change alone. Every other package may import it. Its subpackages define
// names, keys, formats and decisions, and import nothing of ours except the API, each other, and the ground floor; a package that needs one of them
// doesn't have to import the program on the other side.
//
//	capiproxy      the proxy beside programs that use Cluster API: its container, and the environment that points to it
//	certsigner     signers of a control plane's certificates, and the permissions of who signs
//	images         which images of a release operators pass on to each other
//	names          objects, labels and keys in control-plane namespaces
//	nodeconfig     what users write into spec.config of a NodePool, and its serialised form
//	releaseimage   which of its two releases a control plane runs
//	token          the Secrets with which machines boot
package contract
