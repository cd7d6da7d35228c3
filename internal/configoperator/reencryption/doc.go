// Package reencryption is the controller that changes the key of a hosted cluster's Secrets: it records the rotation, and
// writes every Secret again when all API servers write with the new key; with keys of clouds every ConfigMap, too.
//
// What to do is decided by package encryption. This package is the only writer of status.secretEncryption and of condition
// EtcdDataEncryptionUpToDate of the HostedControlPlane; both go out in one patch with the resourceVersion that was read, so
// that two processes can't advance one rotation twice.
//
// Everything is written again either by the storage version migrator of the hosted cluster, where one answers
// (migrator.go), or by this process, a page at a time (rewrite.go). How far this process got is in a ConfigMap next to the
// HostedControlPlane, bound to the very configuration that the servers ran with: when anything about that changes, or is
// in doubt, the work begins again. Beginning again costs requests only, as the API server does not store an object anew
// that is already encrypted with its first key.
package reencryption
