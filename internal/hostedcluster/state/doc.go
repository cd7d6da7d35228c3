// Package state contains what a reconciliation of a HostedCluster has observed, and queries on it. It reads nothing: package hostedcluster
// fills it in, and the plan and the conditions are derived from it alone.
package state
