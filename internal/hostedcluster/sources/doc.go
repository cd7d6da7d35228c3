// Package sources handles the user's Secrets and ConfigMaps that a HostedCluster references: which there are, whether they can be used, what
// is copied into the control-plane namespace and under which names, which copies are no longer needed, and which of them have our
// annotation or belong to the HostedCluster. The plan of package hostedcluster decides when any of this happens.
package sources
