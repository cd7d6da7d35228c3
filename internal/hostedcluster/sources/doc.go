// Package sources knows the Secrets and ConfigMaps of the user that a HostedCluster mentions: which there are, whether they can be used, what
// is copied of them into the control-plane namespace and under which names, which copies nothing needs any more, and which of them bear our
// annotation or belong to the HostedCluster. Who decides when any of it happens is the plan of package hostedcluster.
package sources
