// Package sidecar holds the small programs that run beside and before the containers of a hosted control plane.
//
// They are multiplied by every hosted cluster and work in images without a shell, so each is one job with flags, and all of
// them are links in one static binary (cmd/hcp-sidecar). None may import controller-runtime or client-go's generated
// clients: package kubeapi has the few requests that they make. A role is a package with func Command() *cobra.Command.
package sidecar
