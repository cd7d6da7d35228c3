// Package create makes hosted clusters, and reads back how to reach them.
//
//	NewOptions → flags → Options.Validate → Objects (pure) → apply, or print with --render
//
// What is random (keys, the infrastructure id) is made once and kept in the cluster: creating the same cluster again keeps it.
package create
