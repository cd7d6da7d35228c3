package kubeapiserver

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/encryption"
)

func encrypted(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Spec.SecretEncryption != nil, nil
}

// adaptEncryptionConfig writes the encryption configuration, in the place of the one that it was decided from: a key that
// another process added since must not go.
func adaptEncryptionConfig(ctx component.WorkloadContext, secret *corev1.Secret) error {
	raw, version, err := AESConfig(ctx)
	if err != nil {
		return err
	}
	secret.Data, secret.ResourceVersion = map[string][]byte{encryption.ConfigKey: raw}, version
	return nil
}

// AESConfig is the next encryption configuration, and the resourceVersion of the present one.
func AESConfig(ctx component.WorkloadContext) (raw []byte, version string, err error) {
	spec := ctx.HCP.Spec.SecretEncryption
	if spec.Type != hyperv1.AESCBC {
		return nil, "", fmt.Errorf("spec.secretEncryption.type %s is not supported on platform %s: use aescbc", spec.Type, ctx.HCP.Spec.Platform.Type)
	}
	if spec.AESCBC == nil {
		return nil, "", errors.New("spec.secretEncryption.aescbc is missing")
	}
	live, err := encryption.ReadConfig(ctx.Context, ctx.Reader, ctx.HCP.Namespace)
	if err != nil {
		return nil, "", err
	}
	wanted, err := observeKeys(ctx, live)
	if err != nil {
		return nil, "", err
	}
	keys, err := encryption.Order(wanted)
	if err != nil {
		return nil, "", err
	}
	raw, err = encryption.Config(keys)
	return raw, live.ResourceVersion, err
}

// observeKeys reads what the order of keys is decided from.
func observeKeys(ctx component.WorkloadContext, live encryption.LiveConfig) (w encryption.Wanted, err error) {
	spec, status := ctx.HCP.Spec.SecretEncryption.AESCBC, ctx.HCP.Status.SecretEncryption
	w = encryption.Wanted{Live: live.Keys, Promoted: encryption.Promoted(status)}
	if w.Active, err = statusKey(ctx, live.Keys, status.ActiveKey.AESCBC); err != nil {
		return w, err
	}
	if w.Active == nil && status.TargetKey.AESCBC != nil {
		w.Active = &encryption.Plain
	}
	w.Target, err = statusKey(ctx, live.Keys, status.TargetKey.AESCBC)
	if errors.Is(err, encryption.ErrKey) && len(live.Keys) > 0 {
		// No server has the target, and who set it is about to choose another. Until then everything stays as it is.
		w.Target, err = &live.Keys[0], nil
	}
	if err != nil {
		return w, err
	}
	if w.Active == nil {
		if w.Spec, err = readKey(ctx, spec.ActiveKey.Name); err != nil {
			return w, err
		}
	}
	if spec.BackupKey != nil && spec.BackupKey.Name != "" {
		w.Backup, err = readKey(ctx, spec.BackupKey.Name)
		if err != nil && (!errors.Is(err, encryption.ErrKey) || w.Active == nil) {
			return w, err // With a status, nothing needs the backup key.
		}
	}
	if len(live.Keys) > 0 {
		w.Converged, err = encryption.Converged(ctx.Context, ctx.Reader, ctx.HCP.Namespace, live.Hash)
		return w, err
	}
	w.Unencrypted, err = encryption.Deployed(ctx.Context, ctx.Reader, ctx.HCP.Namespace)
	return w, err
}

// statusKey is a key that the status names; nil when it names none. The Secret may have got another content since; the live
// configuration then still has the key.
func statusKey(ctx component.WorkloadContext, live []encryption.Key, status *hyperv1.AESCBCKeyStatus) (*encryption.Key, error) {
	if status == nil {
		return nil, nil
	}
	if key, ok := encryption.Find(live, status.DataHash); ok {
		return &key, nil
	}
	key, err := readKey(ctx, status.Secret.Name)
	if err == nil && key.Hash() == status.DataHash {
		return key, nil
	}
	if err != nil && !errors.Is(err, encryption.ErrKey) {
		return nil, err
	}
	return nil, fmt.Errorf("%w: the key with SHA-256 %s that stored data needs is neither in Secret %s nor in use: put it back", encryption.ErrKey, status.DataHash, status.Secret.Name)
}

func readKey(ctx component.WorkloadContext, name string) (*encryption.Key, error) {
	key, err := encryption.ReadKey(ctx.Context, ctx.Reader, ctx.HCP.Namespace, name)
	if err != nil {
		return nil, err
	}
	return &key, nil
}
