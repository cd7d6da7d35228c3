package kubeapiserver

import (
	"encoding/base64"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

	// EncryptionHashAnnotation on the pods is sha256:<hex> of their encryption configuration.
	EncryptionHashAnnotation = "hypershift.openshift.io/encryption-config-hash"

	// aesKeySize is that of AES-256, which the API documents for these keys.
	aesKeySize = 32
)

func encrypted(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Spec.SecretEncryption != nil, nil
}

// adaptEncryptionConfig writes the encryption configuration.
func adaptEncryptionConfig(ctx component.WorkloadContext, secret *corev1.Secret) error {
	raw, err := encryptionConfig(ctx)
	if err != nil {
		return err
	}
	secret.Data = map[string][]byte{encryptionKey: raw}
	return nil
}

// encryptionConfig is the next encryption configuration.
func encryptionConfig(ctx component.WorkloadContext) ([]byte, error) {
	spec := ctx.HCP.Spec.SecretEncryption
	if spec.Type != hyperv1.AESCBC {
		return nil, fmt.Errorf("spec.secretEncryption.type %s is not supported on platform %s: use aescbc", spec.Type, ctx.HCP.Spec.Platform.Type)
	}
	if spec.AESCBC == nil {
		return nil, errors.New("spec.secretEncryption.aescbc is missing")
	}
	r, err := observeRotation(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := yaml.Marshal(aesConfig(r.order()))
	if err != nil {
		return nil, fmt.Errorf("encoding the encryption configuration: %w", err)
	}
	return raw, nil
}

func configHash(raw []byte) string { return "sha256:" + dataHash(raw) }

// observeRotation reads what the order of keys is decided from.
func observeRotation(ctx component.WorkloadContext) (rotation, error) {
	spec, status := ctx.HCP.Spec.SecretEncryption.AESCBC, ctx.HCP.Status.SecretEncryption
	var r rotation
	raw, err := readConfig(ctx)
	if err != nil {
		return r, err
	}
	if r.live, err = parseKeys(raw); err != nil {
		return r, err
	}
	if r.want, err = readKey(ctx, spec.ActiveKey.Name); err != nil {
		return r, err
	}
	if target := status.TargetKey.AESCBC; target != nil {
		// A change of the spec waits until the rotation that is going on has ended.
		if r.want, err = r.statusKey(ctx, *target); err != nil {
			return r, err
		}
	}
	if active := status.ActiveKey.AESCBC; active != nil {
		key, err := r.statusKey(ctx, *active)
		if err != nil {
			return r, err
		}
		r.known = append(r.known, key)
		r.migrated = status.TargetKey.AESCBC == nil && key.name == r.want.name
	}
	if backup := spec.BackupKey; backup != nil && backup.Name != "" {
		key, err := readKey(ctx, backup.Name)
		if err != nil {
			return r, err
		}
		r.known = append(r.known, key)
	}
	if len(r.live) > 0 && r.live[0].name != r.want.name {
		r.converged, err = converged(ctx, configHash(raw))
	}
	return r, err
}

// statusKey is a key that the status names. The Secret may have got another content since; the live configuration then still
// has the key.
func (r rotation) statusKey(ctx component.WorkloadContext, status hyperv1.AESCBCKeyStatus) (aesKey, error) {
	key, err := readKey(ctx, status.Secret.Name)
	if err == nil && dataHash(key.data) == status.DataHash {
		return key, nil
	}
	for _, live := range r.live {
		if live.name == keyName(status.DataHash) {
			return live, nil
		}
	}
	return aesKey{}, errors.Join(fmt.Errorf("the encryption key %s (SHA-256 %s) that stored data needs is neither in Secret %s nor in use: put it back",
		keyName(status.DataHash), status.DataHash, status.Secret.Name), err)
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
	return newKey(data), nil
}

func readConfig(ctx component.WorkloadContext) ([]byte, error) {
	secret := &corev1.Secret{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: encryptionSecret}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", encryptionSecret, err)
	}
	return secret.Data[encryptionKey], nil
}

// parseKeys are the AES keys of an encryption configuration, in order.
func parseKeys(raw []byte) ([]aesKey, error) {
	var config apiserverv1.EncryptionConfiguration
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("parsing %s of Secret %s: %w", encryptionKey, encryptionSecret, err)
	}
	var keys []aesKey
	for _, resource := range config.Resources {
		for _, provider := range resource.Providers {
			if provider.AESCBC == nil {
				continue
			}
			for _, key := range provider.AESCBC.Keys {
				data, err := base64.StdEncoding.DecodeString(key.Secret)
				if err != nil {
					return nil, fmt.Errorf("parsing %s of Secret %s: key %s is not base64", encryptionKey, encryptionSecret, key.Name)
				}
				keys = append(keys, aesKey{name: key.Name, data: data})
			}
		}
	}
	return keys, nil
}

// aesConfig encrypts Secrets with the first key and reads them with all of them, and those that were stored before there was
// a key as they are.
func aesConfig(keys []aesKey) *apiserverv1.EncryptionConfiguration {
	aes := &apiserverv1.AESConfiguration{}
	for _, key := range keys {
		aes.Keys = append(aes.Keys, apiserverv1.Key{Name: key.name, Secret: base64.StdEncoding.EncodeToString(key.data)})
	}
	return &apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			Providers: []apiserverv1.ProviderConfiguration{{AESCBC: aes}, {Identity: &apiserverv1.IdentityConfiguration{}}},
		}},
	}
}

// converged says whether every server that runs has the configuration with this hash: the Deployment asks for it and is
// complete, and no pod of before is still going away.
func converged(ctx component.WorkloadContext, hash string) (bool, error) {
	d := &appsv1.Deployment{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: Name}, d)
	if apierrors.IsNotFound(err) {
		return true, nil // Nobody runs.
	}
	if err != nil {
		return false, fmt.Errorf("reading Deployment %s: %w", Name, err)
	}
	if d.Spec.Template.Annotations[EncryptionHashAnnotation] != hash || !component.DeploymentComplete(d) {
		return false, nil
	}
	var pods corev1.PodList
	if err := ctx.Reader.List(ctx.Context, &pods, client.InNamespace(ctx.HCP.Namespace), client.MatchingLabels{"app": Name}); err != nil {
		return false, fmt.Errorf("listing the pods of %s: %w", Name, err)
	}
	for _, pod := range pods.Items {
		if !pod.DeletionTimestamp.IsZero() || pod.Annotations[EncryptionHashAnnotation] != hash {
			return false, nil
		}
	}
	return true, nil
}
