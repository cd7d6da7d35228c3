// Package approver decides on the certificates that nodes ask for: it is the machine-approver of Kubernetes releases.
//
// A new machine asks as node-bootstrapper for a client certificate of its node; a node asks for a serving certificate of its
// kubelet. Both requests are made in the hosted cluster by machines that are its tenant's, and the certificates let their
// owner act as a node, so a request is approved only when it says of a Machine in the control plane namespace nothing but
// the truth, and a first certificate only for one key of each Machine. Renewals of client certificates are approved by
// kube-controller-manager, which needs no Machine for that.
//
// A request is denied only when no kubelet would make it and no person should approve it: what it asks for is no certificate of
// the node that asks. Everything else that can't be approved stays pending, with the reason in an Event on it, because an
// administrator of the hosted cluster may know better: nodes that users bring have no Machine. Kubernetes removes what is
// pending after a day. Requests for other signers are nobody's business here.
//
// Where no machines are managed (platform None, annotation disable-machine-management) nothing is read and nothing decided.
package approver

import "time"

const (
	// Controller is the name of the controller.
	Controller = "machine-approver"

	// KeyAnnotation on a Machine is the SHA-256, in hexadecimal digits, of the public key that its first certificate was approved
	// for. It is written before the approval. No other key gets one.
	KeyAnnotation = "hypershift.openshift.io/kubelet-client-key"

	// bootstrapUser is who a machine is until it has a certificate of its own, bootstrapGroup a group that it is in.
	bootstrapUser  = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	bootstrapGroup = "system:serviceaccounts:openshift-machine-config-operator"

	nodePrefix = "system:node:"
	nodesGroup = "system:nodes"

	// joinWindow is how old a Machine may be for its first certificate: a machine that needs longer to boot is replaced anyway.
	joinWindow = 2 * time.Hour
	// recheck is how soon a request that waits is looked at again while it is younger than patience: Machines are known seconds
	// after they boot. Later, slowly: it probably waits for a person.
	recheck, slowRecheck, patience = 3 * time.Second, time.Minute, 10 * time.Minute

	// pageSize and maxRequests bound what is read of one signer's requests in a pass; the next pass, after breath, goes on from there.
	pageSize, maxRequests = 50, 2000
	breath                = time.Second
	// maxNames bounds the names and addresses in a request; a node has a handful.
	maxNames = 32
	// maxEvents bounds what a pass writes about requests that wait: tenants can make any number of them.
	maxEvents = 20
	// maxListed bounds what a message lists.
	maxListed = 5
)
