// Package local is the platform of hosted clusters whose machines are privileged pods of the management cluster.
//
// Until the Local infrastructure provider exists, InfraCR returns nil: a hosted cluster has a control plane and no machines, as with
// platform None. The provider replaces that nil by its cluster object, and nothing outside this package changes.
package local
