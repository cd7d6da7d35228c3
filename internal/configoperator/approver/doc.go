// Package approver decides on the certificates that nodes ask for: it is the machine-approver of Kubernetes releases.
//
// A new machine asks as node-bootstrapper for a client certificate of its node; a node asks for a serving certificate of its
// kubelet. Both requests are made in the hosted cluster by machines that are its tenant's, and the certificates let their
// owner act as a node, so a request is approved only when it says of a Machine in the control plane namespace nothing but
// the truth. Renewals of client certificates are approved by kube-controller-manager, which needs no Machine for that.
//
// A request that can't become right is denied, with the reason in its condition. One that may (the Machine isn't there yet, or
// its addresses aren't known) is left pending, and its reason is an Event on it; after patience it is denied, too, so that
// none stays without an answer. Requests of others, for other signers, are nobody's business here.
package approver

import "time"

const (
	// Controller is the name of the controller.
	Controller = "machine-approver"

	// bootstrapUser is who a machine is until it has a certificate of its own, bootstrapGroup a group that it is in.
	bootstrapUser  = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	bootstrapGroup = "system:serviceaccounts:openshift-machine-config-operator"

	nodePrefix = "system:node:"
	nodesGroup = "system:nodes"

	// joinWindow is how old a Machine may be for its first certificate: a machine that needs longer to boot is replaced anyway.
	joinWindow = 2 * time.Hour
	// patience is how long a request may stay pending. Machines are known seconds after they boot; a kubelet whose request was
	// denied asks again.
	patience = 10 * time.Minute
	// recheck is how soon a request that waits is looked at again.
	recheck = 3 * time.Second

	// pageSize and maxRequests bound what is read of one signer's requests in a pass.
	pageSize, maxRequests = 50, 2000
	// maxStrange bounds what is read of requests for other signers.
	maxStrange = 200
	// maxNames bounds the names and addresses in a request; a node has a handful.
	maxNames = 32
	// maxEvents bounds what a pass writes about requests that wait: tenants can make any number of them.
	maxEvents = 20
	// maxListed bounds what a message lists.
	maxListed = 5
)
