package reencryption

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/encryption"
)

// IsKey says whether the Secret of this name, in the namespace of hcp, holds an encryption key that a step is decided from.
func IsKey(hcp *hyperv1.HostedControlPlane, name string) bool {
	spec := hcp.Spec.SecretEncryption
	if spec == nil || spec.AESCBC == nil || name == "" {
		return false
	}
	target := hcp.Status.SecretEncryption.TargetKey.AESCBC
	return spec.AESCBC.ActiveKey.Name == name || spec.AESCBC.BackupKey != nil && spec.AESCBC.BackupKey.Name == name ||
		target != nil && target.Secret.Name == name
}

// Matters keeps the many status changes of a control plane from causing passes: only the spec and the rotation count. Our own
// condition doesn't, or its change to a failure would end the pause after it.
func Matters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*hyperv1.HostedControlPlane)
		after, ok2 := e.ObjectNew.(*hyperv1.HostedControlPlane)
		return !ok1 || !ok2 || before.UID != after.UID || before.Generation != after.Generation ||
			encryption.FormOf(before) != encryption.FormOf(after) || !equality.Semantic.DeepEqual(before.Status.SecretEncryption, after.Status.SecretEncryption)
	}}
}
