// Package ignition is the ignition server of one hosted cluster: machines get from it what they boot from.
//
// The NodePool controller writes a token Secret for each configuration of a pool. The [Reconciler] makes a payload of it, and keeps its
// token: after half its life a token becomes the old one, which is good for as long again, so that machines that start just before
// have time to come. Package server hands payloads to machines which know a token. Package config reads what users configure, package
// payload renders.
//
//	token Secret ──► Reconciler ──► tokens.Store ◄── server.Handler ◄── machine
//	      ▲              │ reason, message, new token, payload (InPlace)
//	      └──────────────┘
//
// Every replica makes all payloads: they are cheap for Kubernetes releases, and a replica without memory is ready in a second. Only one
// of several that want to change a token succeeds, because the write carries the version that was read.
package ignition
