// Package capi is the command "capi": Cluster API's objects under their standard names, whichever way a hosted cluster stores them.
//
//	hypershift capi -- kubectl get machines   runs a command behind a proxy of its own
//	hypershift capi proxy                     serves that proxy on the loopback
//	hypershift capi verify                    compares what the proxy shows with what is stored
//
// The proxy is that of package capigroup/proxy, which pods have as a sidecar, in this process and with the user's own credentials.
package capi
