// Package state is what a pass of a HostedCluster's reconciler has observed, and the questions that are asked of it. It reads nothing: package hostedcluster
// fills it in, and the plan and the conditions are made from it alone.
package state
