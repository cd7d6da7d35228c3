// Package pki decides which keys, certificates, bundles and kubeconfigs a hosted control plane needs, and issues them.
//
//	Spec (names, hosts, validity) + Observed (secrets, config maps) ──PlanFor()──▶ Plan (objects to write, and why)
//
// The policy:
//
//   - A certificate authority is replaced in steps (prepare, switch, forget), because everything that trusts it lives elsewhere: two years
//     before it expires, or on request. One that cannot be read is reported, not overwritten.
//   - A leaf is issued again when one of reissueRules says so: the list reads as the specification.
//   - Bundles and kubeconfigs are copies of the above, and follow them.
//   - A key and its certificate are written in one Secret by one request, so that a crash never leaves half of a pair. Reconciler writes in waves
//     (authorities, leaves, copies), so that a certificate is never stored before its signer.
//
// Keys are ECDSA P-256 except for the service account signing key. Measured on the target machine: 0.014 ms to generate one against 60 ms for RSA
// 2048, which for the 33 keys of a control plane is two CPU seconds, a third of what kube-apiserver itself needs to start; handshakes are cheaper
// by the same token. Every consumer (kube-apiserver, etcd, kube-controller-manager as a signer, HAProxy, Go and OpenSSL clients) takes both. The names,
// subjects, secrets and keys of secrets are the same, existing RSA pairs stay in use until their leaves expire, and NewKeySource can be
// told to generate RSA. The service account key stays RSA because users publish its public half in OIDC documents that say RS256.
package pki
