package reencryption

import "hcp.internal/platform/internal/encryption"

const (
	// Controller is the name of the controller.
	Controller = "reencryption"

	// progressName is the ConfigMap, in the control plane namespace, that says how far the rewriting is.
	progressName = "secret-reencryption-progress"
	// Its keys.
	rotationKey  = "rotation"  // what the rest is about
	kindKey      = "kind"      // which kind is being written again, by its place
	continueKey  = "continue"  // where to go on in its list
	rewrittenKey = "rewritten" // how many are done
	failedKey    = "failed"    // how many of those were refused

	// migrationName is the StorageVersionMigration of Secrets in the hosted cluster.
	migrationName = "encryption-migration-core-secrets"
	// writeKeyAnnotation says which key it is about, and rotationAnnotation which rotation.
	writeKeyAnnotation = "encryption.apiserver.operator.openshift.io/write-key"
	rotationAnnotation = "hypershift.openshift.io/encryption-rotation"
)

// writeKey is the name of a key in writeKeyAnnotation.
func writeKey(fingerprint string) string { return "encryption-key-" + fingerprint }

// rotationID tells what progress is about: the target, and the configuration that the servers have. The same target with the
// same bytes of configuration may come again after another rotation, but never in the same version of the Secret. Whoever takes the data of etcd
// back to what it was changes the Secret, too, since positions in what was lost say nothing of what there is (see package etcdrecovery).
func rotationID(target string, live encryption.LiveConfig) string {
	return encryption.Fingerprint([]byte(target + "\n" + live.Hash + "\n" + live.Version))
}
