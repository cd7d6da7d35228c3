// Package proxy is an HTTP proxy in front of a management cluster's API server. Through it, programs that use Cluster API's own groups
// transparently reach what is stored in HyperShift's; package translate has the rules.
//
// It keeps no state and adds no identity of its own unless told to: the caller's token is passed on unchanged. Bodies are translated while they
// stream, in constant memory, except for what can't be: JSON patches, YAML and protobuf, which the API server limits to 3 MiB.
// A truncated body is never terminated as if it were complete. Bodies and tokens are never logged.
package proxy
