// Package konnectivity is the tunnel by which a hosted API server reaches workers that it can't dial: kubelets for exec, logs
// and port-forward, and the Services of webhooks and aggregated APIs.
//
//	kube-apiserver ──CONNECT host:port, mTLS──▶ server ◀──TLS, dialled by the agent── agent ──TCP──▶ kubelet, pod, Service
//	  (egress selector)              :8090     :8091          (one per node)
//
// The server runs beside kube-apiserver, the agents on the nodes. After its request to join, an agent's connection is turned
// round: the agent serves HTTP/2 on it and the server sends CONNECT requests, one stream for each tunnel. So streams, their
// flow control and keepalive are HTTP/2's; nothing is framed here. A slow reader stops its own stream and no other.
//
// Every agent connects to every server, of which there are as many as kube-apiservers: a server tells its identity and how
// many there are, and the agent dials the common address until it has met them all.
//
// Both sides are strict about who they talk to. The two ports are separate and each takes client certificates of one name
// only, so an agent can't ask for tunnels and kube-apiserver can't pose as an agent. What an agent sends is bounded in size
// and number, and a tunnel's bytes are only in its own stream. An agent that swallows connections harms those that it was
// given: TLS from end to end keeps it from reading them, and the next attempt goes to another agent. It can't have itself given more
// than its share: what it claims counts for its own address only, and traffic is shared between addresses, not connections.
package konnectivity

import "time"

const (
	// joinPath and joinProtocol are an agent's request to join: GET with Connection: Upgrade.
	joinPath     = "/v1/agent"
	joinProtocol = "konnectivity-h2"

	// Headers of the request to join and of its answer.
	agentIDHeader     = "Konnectivity-Agent-Id"
	identifiersHeader = "Konnectivity-Agent-Identifiers"
	serverIDHeader    = "Konnectivity-Server-Id"
	serverCountHeader = "Konnectivity-Server-Count"
	// reasonHeader says in an answer to CONNECT why it failed.
	reasonHeader = "Konnectivity-Reason"

	maxIDLength          = 128
	maxIdentifiersLength = 1024
	maxIdentifiers       = 32
	maxReasonLength      = 256
	// maxTargetLength is a DNS name with a port.
	maxTargetLength = 253 + 1 + 5
	// maxHeaderBytes is ample for what either port is asked.
	maxHeaderBytes = 8 << 10
	// maxServers bounds what a server may say about how many there are.
	maxServers = 16

	// handshakeTimeout bounds TLS and the request that follows, on both ports and both sides.
	handshakeTimeout = 10 * time.Second
	// dialTimeout is how long an agent tries to connect to a target; within a cluster milliseconds are normal.
	dialTimeout = 5 * time.Second
	// attemptTimeout is how long the server waits for one agent's answer: more than the agent needs to report its own timeout.
	attemptTimeout = dialTimeout + time.Second
	// maxAttempts is how many agents are tried for a tunnel: within the 30 s that kube-apiserver waits for a connection.
	maxAttempts = 3
	// pingTimeout is how long the other side may take to answer a ping before its connection counts as dead.
	pingTimeout = 10 * time.Second
	// writeTimeout ends a connection on which nothing can be written.
	writeTimeout = 30 * time.Second

	// streamWindow bounds what is buffered for one tunnel in one direction on each side. It allows 256 KiB in a round trip:
	// 25 MB/s at 10 ms.
	streamWindow = 256 << 10
	// connectionWindow bounds what one agent can have in flight towards us. It is larger than maxStreams windows, so that slow
	// readers never hold up the others.
	connectionWindow = maxStreams * streamWindow
	// maxStreams bounds the tunnels through one agent.
	maxStreams = 500
	// copyBuffer is what is read at once; HTTP/2 sends frames of 16 KiB.
	copyBuffer = 16 << 10
)
