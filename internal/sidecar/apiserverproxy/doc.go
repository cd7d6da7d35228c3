// Package apiserverproxy makes Service default/kubernetes of a hosted cluster work on nodes where the address that it points to is
// nobody else's: where the API is published under a name, or with an advertised address of its own.
//
//	pod ──kubernetes.default──▶ advertised address, on the node's lo ──this program──▶ host:port of the published API
//
// It passes bytes on and knows nothing of them: TLS ends at the API server, whose certificate has the advertised address. The
// kubelet and other programs that make a node's network don't need it; they use the published name.
//
// Two of it may listen at a time, so that an update is not seen by those who connect; connections of before live on until their
// process has drained. The address stays when the program ends: its successor needs it, and the kernel forgets it with the node.
package apiserverproxy
