// Package status is what a HostedCluster says of itself: conditions, the gates that are open or closed, versions, the summary for tools, and the events that tell
// of changes. All of it is made from what was observed (package state), and nothing is read.
package status
