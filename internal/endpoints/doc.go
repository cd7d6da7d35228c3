// Package endpoints decides how the API of a hosted cluster is published on the management cluster, and under which
// addresses it can then be reached.
//
//	HostedControlPlane ──Services()──▶ Services to apply ──(cloud or local controller assigns addresses)──▶ live Services
//	HostedControlPlane + live Services ──StatusOf()──▶ Status: host, port, advertised address, or what is missing
//
// Everything here is pure except Observe, which reads what StatusOf looks at. Only endpoints that something listens on are published;
// a hosted cluster is ready for its control plane when those have addresses, and never waits for any other.
package endpoints
