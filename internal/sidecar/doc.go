// Package sidecar holds the small programs that run beside and before the containers of a hosted control plane.
//
// They are multiplied by every hosted cluster and work in images without a shell, so each is one job with flags, and all of
// them are links in one static binary (cmd/hcp-sidecar). Every process pays for the initialisation of everything that is
// linked, so none imports client-go, gRPC or etcd's client: package kubeapi has the few requests to API servers, and
// package etcdinit those to etcd. A role is a package with func Command() *cobra.Command.
//
// The exceptions are etcdrestore, which needs etcd's storage code, and kmsplugin, which needs gRPC: they are linked into hcp-operators.
package sidecar
