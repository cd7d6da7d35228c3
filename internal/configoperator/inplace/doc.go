// Package inplace changes the machines of a NodePool without replacing them.
//
//	MachineSet annotations      target != current: an upgrade is under way
//	Node annotations            desiredConfig (ours) ──▶ the daemon on the node works ──▶ currentConfig, state (the node's)
//	                            desiredDrain (the node's) ──▶ cordon and evict, or uncordon ──▶ lastAppliedDrain (ours)
//
// At most maxUnavailable nodes have a desired configuration that isn't their current one. Each of them gets a pod, the
// machine-config-daemon, with the configuration as a Secret; it asks for a drain, writes the files, restarts the machine and
// reports. The pods and the Secret are in a namespace of their own in the hosted cluster.
//
// A node that isn't ready counts as if it were under way, so that an upgrade stops when nodes don't come back from it. While the NodePool or its HostedCluster is
// paused, nodes under way finish, with their drains, and no other one is begun.
//
// A drain that has lasted for spec.nodeDrainTimeout of the NodePool counts as over, with the pods that are left, as Cluster API does with Machines. How long that
// is comes with the MachineSet.
//
// What nodes report is their word only. A node can say that it is done or degraded, which concerns itself; it can't make
// another one drain, and the number of nodes under way never exceeds the limit, whatever they say.
package inplace

import "time"

const (
	// Controller and DrainController are the names of the two controllers.
	Controller      = "inplaceupgrader"
	DrainController = "drainer"

	// poll is how often an upgrade that is under way is looked at; payloadPoll, while its configuration is being made.
	poll        = 10 * time.Second
	payloadPoll = 5 * time.Second
	// drainPoll is how often a drain goes on: evictions that a budget forbids are tried again.
	drainPoll = 5 * time.Second
	// maxEvictions are asked for at a time, and evictionTimeout bounds each: a healthy API server answers at once.
	maxEvictions    = 10
	evictionTimeout = 2 * time.Second
	// stuckAfter is how long a pod on an unreachable node may be deleting before the drain goes on without it.
	stuckAfter = 5 * time.Minute
	// passTimeout bounds a pass.
	passTimeout = time.Minute
	// maxPods bounds the pods of a node that one pass looks at; kubelets run 110.
	maxPods = 1000
	// maxReason bounds what a node says about itself.
	maxReason = 256
	// maxNamed is how many pods, nodes or machines a message names.
	maxNamed = 3

	annotationPrefix = "machineconfiguration.openshift.io/"
	currentConfig    = annotationPrefix + "currentConfig"
	desiredConfig    = annotationPrefix + "desiredConfig"
	stateAnnotation  = annotationPrefix + "state"
	reasonAnnotation = annotationPrefix + "reason"
	desiredDrain     = annotationPrefix + "desiredDrain"
	lastAppliedDrain = annotationPrefix + "lastAppliedDrain"
	// drainBlocked is what forbids the drain of a node, by the drainer.
	drainBlocked = "hypershift.openshift.io/drain-blocked"
	// drainStarted is since when a node drains and for what, by the drainer: TIME DESIREDDRAIN. It goes when the drain ends.
	drainStarted   = "hypershift.openshift.io/drain-started"
	stateDone      = "Done"
	stateDegraded  = "Degraded"
	drainPrefix    = "drain-"
	uncordonPrefix = "uncordon-"
	daemonPrefix   = "machine-config-daemon-"
	configKey      = "config"
	hashKey        = "hash"

	// Keys of a token Secret.
	payloadKey        = "payload"
	releaseKey        = "release"
	releaseVersionKey = "release-version"
)

// namespaceOf is where an upgrade's objects are in the hosted cluster; its Secret has the same name.
func namespaceOf(machineSet string) string { return machineSet + "-upgrade" }

// tokenSecret is the Secret with what machines of a version are configured with.
func tokenSecret(machineSet, version string) string { return "token-" + machineSet + "-" + version }
