// Package hcpstatus tells on the HostedControlPlane how far the hosted cluster of an OpenShift payload is: what its ClusterVersion says of the rollout, and
// its Authentication of clients.
//
//	hosted API ── ClusterVersion, Authentication ──▶ plan (pure, bounded) ──▶ status of the HostedControlPlane
//
// Both objects are the tenant's to write, in whole or in part. What is taken over is bounded in number and length, has no control characters, and is what the
// API of the HostedControlPlane takes; the rest is left out. Programs that act on it must not take it for more than the word of the hosted cluster.
package hcpstatus
