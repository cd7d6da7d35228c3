// Package proxy is an HTTP proxy before a management cluster's API server. Programs that know Cluster API by its own groups reach
// through it what is stored in HyperShift's, and don't notice; package translate has the rules.
//
// It keeps no state and adds no identity of its own unless told to: the caller's token goes on as it is. Bodies are translated while they
// stream, in constant memory, except for what can't be: JSON patches, YAML and protobuf, which the API server limits to 3 MiB.
// A body that breaks off is never ended as if it were complete. Bodies and tokens are never logged.
package proxy
