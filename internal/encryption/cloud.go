package encryption

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Ref names a key as status.secretEncryption does; the zero Ref none.
type Ref = hyperv1.SecretEncryptionKeyStatus

// isSet tells whether a key is named.
func isSet(r Ref) bool { return r.AESCBC != nil || r.AWS != nil || r.Azure != nil }

// Vault is the kind of key vault, which tells keys of Azure apart beside what a Ref says. It can't change.
func Vault(hcp *hyperv1.HostedControlPlane) hyperv1.AzureKeyVaultType {
	if kms := kmsOf(hcp); kms != nil && kms.Azure != nil {
		return kms.Azure.KeyVaultType
	}
	return ""
}

func kmsOf(hcp *hyperv1.HostedControlPlane) *hyperv1.KMSSpec {
	if e := hcp.Spec.SecretEncryption; e != nil {
		return e.KMS
	}
	return nil
}

// HashOf is Key.Hash of the key that is named; empty for none.
func HashOf(r Ref, vault hyperv1.AzureKeyVaultType) string {
	switch {
	case r.AESCBC != nil:
		return r.AESCBC.DataHash
	case r.AWS != nil, r.Azure != nil:
		return cloudName(r, vault)
	}
	return ""
}

// CloudKey is the key of a cloud that is named.
func CloudKey(r Ref, vault hyperv1.AzureKeyVaultType) Key {
	return Key{Name: cloudName(r, vault), Form: InCloud, Ref: r.DeepCopy()}
}

// cloudName is the name by which etcd's values remember a key of a cloud: it must not change.
func cloudName(r Ref, vault hyperv1.AzureKeyVaultType) string {
	if r.AWS != nil {
		return "awskmskey-" + fnv32([]byte(r.AWS.ARN))
	}
	identity := struct {
		KeyVaultName string `json:"keyVaultName,omitempty"`
		KeyName      string `json:"keyName,omitempty"`
		KeyVersion   string `json:"keyVersion,omitempty"`
		KeyVaultType string `json:"keyVaultType,omitempty"`
	}{KeyVaultName: r.Azure.KeyVaultName, KeyName: r.Azure.KeyName, KeyVersion: r.Azure.KeyVersion}
	if vault == hyperv1.AzureManagedHSM {
		identity.KeyVaultType = string(vault)
	}
	raw, _ := json.Marshal(identity) // texts alone
	return "azure-" + fnv32(raw)
}

// fnv32 is the 32-bit FNV-1 hash of data, in decimal.
func fnv32(data []byte) string {
	h := fnv.New32()
	_, _ = h.Write(data) // never fails
	return fmt.Sprint(h.Sum32())
}

// CloudRefs are the active and the backup key of spec.secretEncryption.kms, where they change as ours do: with all that is stored written again. It is not so for
// IBM's plugin, which has a list of keys of its own. backup is zero when there is none.
func CloudRefs(hcp *hyperv1.HostedControlPlane) (active, backup Ref, ok bool) {
	e, kms := hcp.Spec.SecretEncryption, kmsOf(hcp)
	switch {
	case e == nil || e.Type != hyperv1.KMS || kms == nil:
	case kms.Provider == hyperv1.AWS && kms.AWS != nil:
		active = Ref{Provider: hyperv1.SecretEncryptionProviderAWS, AWS: kms.AWS.ActiveKey.DeepCopy()}
		if kms.AWS.BackupKey != nil {
			backup = Ref{Provider: hyperv1.SecretEncryptionProviderAWS, AWS: kms.AWS.BackupKey.DeepCopy()}
		}
		return active, backup, true
	case kms.Provider == hyperv1.Azure && kms.Azure != nil:
		active = Ref{Provider: hyperv1.SecretEncryptionProviderAzure, Azure: kms.Azure.ActiveKey.DeepCopy()}
		if kms.Azure.BackupKey != nil {
			backup = Ref{Provider: hyperv1.SecretEncryptionProviderAzure, Azure: kms.Azure.BackupKey.DeepCopy()}
		}
		return active, backup, true
	}
	return Ref{}, Ref{}, false
}

// Rotates tells whether the keys of a control plane change step by step, with all that is stored written again.
func Rotates(hcp *hyperv1.HostedControlPlane) bool {
	if _, _, ok := CloudRefs(hcp); ok {
		return true
	}
	e := hcp.Spec.SecretEncryption
	return e != nil && e.Type == hyperv1.AESCBC && e.AESCBC != nil
}

// UnderWay tells whether a change of keys is, or nobody has said yet what is stored.
func UnderWay(hcp *hyperv1.HostedControlPlane) bool {
	status := hcp.Status.SecretEncryption
	return Rotates(hcp) && (isSet(status.TargetKey) || !isSet(status.ActiveKey))
}

// Resolve says which keys of clouds the names in a configuration stand for. One that nobody names any more is an error: its plugin can't be started, and
// what is stored may need it.
func Resolve(keys []Key, hcp *hyperv1.HostedControlPlane) ([]Key, error) {
	active, backup, _ := CloudRefs(hcp)
	status, vault := hcp.Status.SecretEncryption, Vault(hcp)
	known := map[string]Ref{}
	for _, ref := range []Ref{status.ActiveKey, status.TargetKey, active, backup} {
		if ref.AWS != nil || ref.Azure != nil {
			known[cloudName(ref, vault)] = ref
		}
	}
	out := make([]Key, len(keys))
	for i, key := range keys {
		if key.Form == InCloud {
			ref, ok := known[key.Name]
			if !ok {
				return nil, fmt.Errorf("%w: stored data may need the key that etcd knows as %s, and nobody names it any more: write the key that was active before into backupKey of spec.secretEncryption.kms", ErrKey, key.Name)
			}
			key.Ref = &ref
		}
		out[i] = key
	}
	return out, nil
}

// text names a key in messages.
func text(r Ref) string {
	switch {
	case r.AWS != nil:
		return "key " + r.AWS.ARN
	case r.Azure != nil:
		return fmt.Sprintf("key %s/%s/%s", r.Azure.KeyVaultName, r.Azure.KeyName, r.Azure.KeyVersion)
	case r.AESCBC != nil:
		return "the key of Secret " + r.AESCBC.Secret.Name
	}
	return "no key"
}

// fingerprint identifies a key in the history.
func fingerprint(r Ref, vault hyperv1.AzureKeyVaultType) string {
	switch {
	case r.AWS != nil:
		return Fingerprint([]byte(r.AWS.ARN))
	case r.Azure != nil:
		id := r.Azure.KeyVaultName + "/" + r.Azure.KeyName + "/" + r.Azure.KeyVersion
		if vault == hyperv1.AzureManagedHSM {
			id += "/" + string(vault)
		}
		return Fingerprint([]byte(id))
	case r.AESCBC != nil:
		return r.AESCBC.DataHash
	}
	return unencrypted
}
