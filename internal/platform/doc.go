// Package platform knows what differs between the places where machines of a hosted cluster live.
//
// Platform is what the HostedCluster controller asks of each; a package below this one implements it, and For is the only place that
// looks at spec.platform.type. Adding a platform is a folder and a line in the table.
package platform
