package kubeapiserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

const (
	encryptionSecret = "kas-secret-encryption-config"
	encryptionKey    = "config.yaml"

	// aesKeySize is that of AES-256, which the API documents for these keys.
	aesKeySize = 32
)

// aesKey is a key and the name under which etcd's values remember it.
type aesKey struct{ data []byte }

// name tells keys apart without telling what they are. It depends on nothing but the key, so that a key keeps its name when
// it moves from active to backup or to another Secret.
func (k aesKey) name() string {
	sum := sha256.Sum256(k.data)
	return "key-" + hex.EncodeToString(sum[:])[:16]
}

func encrypted(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Spec.SecretEncryption != nil, nil
}

// adaptEncryptionConfig writes the encryption configuration: the active key writes, the backup key still reads, and what was
// stored before there was a key is read as it is.
func adaptEncryptionConfig(ctx component.WorkloadContext, secret *corev1.Secret) error {
	spec := ctx.HCP.Spec.SecretEncryption
	if spec.Type != hyperv1.AESCBC {
		return fmt.Errorf("spec.secretEncryption.type %s is not supported on platform %s: use aescbc", spec.Type, ctx.HCP.Spec.Platform.Type)
	}
	if spec.AESCBC == nil {
		return errors.New("spec.secretEncryption.aescbc is missing")
	}
	active, err := readKey(ctx, spec.AESCBC.ActiveKey.Name)
	if err != nil {
		return err
	}
	keys := []aesKey{active}
	if backup := spec.AESCBC.BackupKey; backup != nil && backup.Name != "" {
		key, err := readKey(ctx, backup.Name)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	raw, err := yaml.Marshal(encryptionConfig(keys))
	if err != nil {
		return fmt.Errorf("encoding the encryption configuration: %w", err)
	}
	secret.Data = map[string][]byte{encryptionKey: raw}
	return nil
}

func readKey(ctx component.WorkloadContext, name string) (aesKey, error) {
	secret := &corev1.Secret{}
	if err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}, secret); err != nil {
		return aesKey{}, fmt.Errorf("reading the encryption key %s: %w", name, err)
	}
	data := secret.Data[hyperv1.AESCBCKeySecretKey]
	if len(data) != aesKeySize {
		return aesKey{}, fmt.Errorf("key %q of Secret %s has %d bytes: an AES key must have %d", hyperv1.AESCBCKeySecretKey, name, len(data), aesKeySize)
	}
	return aesKey{data: data}, nil
}

// encryptionConfig encrypts Secrets with the first key and reads them with all of them. A key that is listed twice counts
// once.
func encryptionConfig(keys []aesKey) *apiserverv1.EncryptionConfiguration {
	aes, seen := &apiserverv1.AESConfiguration{}, map[string]bool{}
	for _, key := range keys {
		if !seen[key.name()] {
			seen[key.name()] = true
			aes.Keys = append(aes.Keys, apiserverv1.Key{Name: key.name(), Secret: base64.StdEncoding.EncodeToString(key.data)})
		}
	}
	return &apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			Providers: []apiserverv1.ProviderConfiguration{{AESCBC: aes}, {Identity: &apiserverv1.IdentityConfiguration{}}},
		}},
	}
}
