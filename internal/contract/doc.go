// Package contract is the floor that every other package may stand on: what two programs agree on and neither may change alone. Its rooms hold
// names, keys, formats and decisions, and import nothing of ours but the API, each other, and the ground; whoever needs one of them need not import the program
// on the other side.
//
//	capiproxy      the proxy beside programs that speak Cluster API: its container, and the environment that tells of it
//	certsigner     signers of certificates of a control plane, and the rights of who signs
//	images         which images of a release operators hand on to each other
//	names          objects, labels and keys in control-plane namespaces
//	nodeconfig     what users write into spec.config of a NodePool, and the text in which it travels
//	releaseimage   which of its two releases a control plane runs
//	token          the Secrets with which machines boot
package contract
