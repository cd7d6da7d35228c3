// Package sharedingress is one endpoint for the API servers, tunnels and other servers of many hosted clusters.
//
//	names    connections that begin with TLS are led by the server name in their first message (SNI)
//	clusters connections that begin with a PROXY header, version 2, by the ID of a hosted cluster in its TLV of type 0x20: nodes, whose clients
//	         ask for names that are the same in all clusters
//
// It holds no key: TLS ends in the control planes. Where connections go is a Table that is replaced as a whole, so a change costs nobody a
// connection. What comes in is hostile: the first message is bounded in size and time, connections in number: all together, for each backend, for
// each hosted cluster, and those that have said nothing yet, which the addresses of clients share.
//
// A connection that no backend takes is closed without an answer.
package sharedingress
