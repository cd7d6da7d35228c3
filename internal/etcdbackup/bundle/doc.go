// Package bundle is the format of what a backup of a hosted cluster leaves in a storage, without any storage:
//
//	PREFIX/1764000000.db        etcd's snapshot as it is (no key was given), or
//	PREFIX/1764000000.db.enc    the same, sealed with the user's key
//	PREFIX/1764000000.etcd-events.db.enc   the snapshot of shard events, or .etcd-events.db
//	PREFIX/1764000000.objects   HostedCluster, NodePools, Secrets and certificate authorities, always sealed; only when there is a key
//	PREFIX/1764000000.json      the Manifest, written last: without it a backup isn't complete
//
// Sealed files begin with a header that names the key by its fingerprint; what follows is AES-256-GCM or ChaCha20-Poly1305 in packages of 64 KiB (DARE 2.0),
// so that a file can be read and written as a stream, and a changed, reordered or missing part is noticed. The manifest carries sums of the files and, when
// there is a key, an HMAC: who can write to the bucket, but has no key, can't make a backup that is taken for ours.
package bundle
