// Package encryption decides how the keys change that Secrets of a hosted cluster are encrypted with in etcd.
//
// Two processes take part, and each writes its own thing:
//
//	control-plane-operator          the keys kube-apiserver has (Secret kas-secret-encryption-config)   Order
//	hosted-cluster-config-operator  status.secretEncryption, EtcdDataEncryptionUpToDate, the rewriting  Next
//
// A change of key goes through these states, in status.secretEncryption.history:
//
//	              target unknown to servers,          every server reads          every server writes
//	              or only read by some                with it                     with it
//	Completed ──▶ ReadOnlyDeploy ───────────────────▶ WritePromote ─────────────▶ Migrating ──▶ Completed
//	                    ▲   │ the target's bytes were lost before any server got them,
//	     another target └───┘ or the spec named another key before the target wrote: Interrupted
//
// A server that starts gets ready only if it can use each of its keys, see the startup probes of kube-apiserver. So a key of a cloud that can't be used stays
// in ReadOnlyDeploy, and the way back is to name the key of before in the spec. A target that is given up stays in the status, as Interrupted, until the
// control-plane-operator has taken it from the configuration: it can't come to write any more then. One that came to write meanwhile is gone on with. The
// control-plane-operator takes it by itself when it sees the spec: in a cluster that slept meanwhile no server may get ready before that, and without one the
// hosted-cluster-config-operator does not run.
//
// A key is in one of three forms: in kube-apiserver's configuration, in a plugin of ours, or in a service of a cloud, which a plugin of that cloud asks.
//
// The invariant: status.activeKey and the keys of the live configuration together read everything that is stored, and a key
// leaves the configuration only when there is no target and status.activeKey writes, that is, when everything was written
// again with it, or when it never wrote. Both decisions are pure; a test plays them against servers that are replaced one by one.
package encryption
