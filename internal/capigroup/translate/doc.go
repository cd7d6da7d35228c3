// Package translate renames the API groups of Cluster API between what a stock program sees and what the management cluster
// stores: *.cluster.x-k8s.io and *.cluster.hypershift.openshift.io.
//
// The renaming σ swaps the two suffixes. It is its own inverse, so the same functions serve requests and responses, and a body that
// is translated twice is the body itself, byte for byte. Names are found by position and never by text: a group is renamed where the
// Kubernetes API holds a group (a path segment, apiVersion of an owner reference, apiGroups of a rule, …) and nowhere else, because
// labels, finalizers, condition types and Secret types look just the same and must stay as they are.
//
//	Parse       what a request is about, and its path and query in the other view
//	Request     gives the Plan of its bodies: which positions hold groups
//	Translator  streams JSON through a Plan, in constant memory
//	Protobuf    does the same for a message of Kubernetes' protobuf encoding, held in memory
//	Text, Warning, …  the few free texts that name groups
//
// There is no I/O here, and nothing of Kubernetes is imported.
package translate
