package reencryption

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/encryption"
)

// observe reads what a step is decided from.
func observe(ctx context.Context, reader client.Reader, hcp *hyperv1.HostedControlPlane) (encryption.Observed, encryption.LiveConfig, error) {
	obs := encryption.Observed{Status: hcp.Status.SecretEncryption, Vault: encryption.Vault(hcp)}
	live, err := encryption.ReadConfig(ctx, reader, hcp.Namespace)
	if err != nil {
		return obs, live, err
	}
	obs.Live = live.Keys
	if active, backup, ok := encryption.CloudRefs(hcp); ok {
		obs.Spec, obs.Backup = &active, backup
	} else if err := observeSecrets(ctx, reader, hcp, &obs); err != nil {
		return obs, live, err
	}
	if target := obs.Status.TargetKey.AESCBC; target != nil {
		key, err := encryption.ReadKey(ctx, reader, hcp.Namespace, target.Secret.Name)
		if err != nil && !errors.Is(err, encryption.ErrKey) {
			return obs, live, err
		}
		if err == nil {
			_, obs.TargetReadable = key.Matching(target.DataHash)
		}
	} else {
		obs.TargetReadable = true // the status has all that is needed of a key of a cloud
	}
	if len(live.Keys) == 0 || encryption.HashOf(obs.Status.TargetKey, obs.Vault) == "" {
		return obs, live, nil // a key that can't be used is in obs, and no failure
	}
	obs.Converged, err = encryption.Converged(ctx, reader, hcp.Namespace, live.Hash)
	return obs, live, err
}

// observeSecrets reads the keys that spec.secretEncryption.aescbc names.
func observeSecrets(ctx context.Context, reader client.Reader, hcp *hyperv1.HostedControlPlane, obs *encryption.Observed) error {
	spec := hcp.Spec.SecretEncryption.AESCBC
	active, err := encryption.ReadKey(ctx, reader, hcp.Namespace, spec.ActiveKey.Name)
	switch {
	case err == nil:
		ref := encryption.AESCBCRef(spec.ActiveKey.Name, active.In(encryption.FormOf(hcp)))
		obs.Spec = &ref
	case errors.Is(err, encryption.ErrKey):
		obs.SpecProblem = fmt.Sprintf("spec.secretEncryption.aescbc.activeKey: %v", err)
	default:
		return err
	}
	if spec.BackupKey != nil && spec.BackupKey.Name != "" {
		backup, err := encryption.ReadKey(ctx, reader, hcp.Namespace, spec.BackupKey.Name)
		if err == nil {
			obs.Backup = encryption.AESCBCRef(spec.BackupKey.Name, backup.In(encryption.FormOf(hcp)))
		} else if !errors.Is(err, encryption.ErrKey) {
			return err
		}
	}
	return nil
}
