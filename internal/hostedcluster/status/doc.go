// Package status computes what a HostedCluster reports: conditions, gates, versions, the summary for tools, and the events that announce
// changes. All of it is derived from what was observed (package state), and nothing is read.
package status
