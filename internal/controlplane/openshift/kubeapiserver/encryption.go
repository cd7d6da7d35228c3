package kubeapiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	kubernetes "hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/encryption"
)

// hashAnnotation on the pods is the hash of their encryption configuration, as OpenShift's tools look for it.
const hashAnnotation = "kube-apiserver.hypershift.openshift.io/encryption-config-hash"

// kmsTimeout is how long a provider may take for one key.
const kmsTimeout = 35 * time.Second

// kmsResources are encrypted with keys of a KMS.
var kmsResources = []string{"secrets", "configmaps", "routes.route.openshift.io", "oauthaccesstokens.oauth.openshift.io", "oauthauthorizetokens.oauth.openshift.io"}

func encrypted(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Spec.SecretEncryption != nil, nil
}

// azureKMS says whether keys are in a key vault, and read by a managed identity.
func azureKMS(ctx component.WorkloadContext) (bool, error) {
	kms := kmsOf(ctx.HCP)
	return kms != nil && kms.Azure != nil && kms.Azure.KMS != nil, nil
}

// kmsOf is spec.secretEncryption.kms where that is the kind of encryption.
func kmsOf(hcp *hyperv1.HostedControlPlane) *hyperv1.KMSSpec {
	if e := hcp.Spec.SecretEncryption; e != nil && e.Type == hyperv1.KMS {
		return e.KMS
	}
	return nil
}

func adaptEncryption(ctx component.WorkloadContext, secret *corev1.Secret) error {
	raw, version, err := encryptionConfig(ctx)
	if err != nil {
		return err
	}
	secret.Data, secret.ResourceVersion = map[string][]byte{encryption.ConfigKey: raw}, version
	return nil
}

// encryptionConfig is the encryption configuration, and the resourceVersion of the one that it was decided from.
func encryptionConfig(ctx component.WorkloadContext) (raw []byte, version string, err error) {
	if ctx.HCP.Spec.SecretEncryption.Type != hyperv1.KMS {
		return kubernetes.AESConfig(ctx)
	}
	providers, err := kmsProviders(kmsOf(ctx.HCP))
	if err != nil {
		return nil, "", err
	}
	config := apiserverv1.EncryptionConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{Resources: kmsResources}},
	}
	plain := apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
	config.Resources[0].Providers = append(providers, plain)
	if raw, err = yaml.Marshal(config); err != nil {
		return nil, "", fmt.Errorf("writing the encryption configuration: %w", err)
	}
	return raw, "", nil
}

// kmsProviders are the plugins of the active key and, if there is one, of the backup key.
func kmsProviders(kms *hyperv1.KMSSpec) ([]apiserverv1.ProviderConfiguration, error) {
	provider := func(name, socket string) apiserverv1.ProviderConfiguration {
		return apiserverv1.ProviderConfiguration{KMS: &apiserverv1.KMSConfiguration{
			APIVersion: "v2", Name: name, Endpoint: "unix://" + socket, Timeout: &metav1.Duration{Duration: kmsTimeout},
		}}
	}
	var list []apiserverv1.ProviderConfiguration
	switch {
	case kms == nil:
		return nil, errors.New("spec.secretEncryption.kms is missing")
	case kms.Provider == hyperv1.AWS && kms.AWS != nil:
		list = append(list, provider("awskmskey-"+fnv32([]byte(kms.AWS.ActiveKey.ARN)), awsSocketDir+awsActiveSocket))
		if k := kms.AWS.BackupKey; k != nil {
			list = append(list, provider("awskmskey-"+fnv32([]byte(k.ARN)), awsSocketDir+awsBackupSocket))
		}
	case kms.Provider == hyperv1.Azure && kms.Azure != nil:
		list = append(list, provider(azureKeyName(kms.Azure, kms.Azure.ActiveKey), azureSocketDir+azureActiveSocket))
		if k := kms.Azure.BackupKey; k != nil {
			list = append(list, provider(azureKeyName(kms.Azure, *k), azureSocketDir+azureBackupSocket))
		}
	case kms.Provider == hyperv1.IBMCloud && kms.IBMCloud != nil:
		list = append(list, provider("ibmv2", "/tmp/keyprotectprovider.sock"))
	default:
		return nil, fmt.Errorf("spec.secretEncryption.kms.provider is %q, and its section is missing", kms.Provider)
	}
	return list, nil
}

func azureKeyName(spec *hyperv1.AzureKMSSpec, key hyperv1.AzureKMSKey) string {
	identity := struct {
		KeyVaultName string `json:"keyVaultName,omitempty"`
		KeyName      string `json:"keyName,omitempty"`
		KeyVersion   string `json:"keyVersion,omitempty"`
		KeyVaultType string `json:"keyVaultType,omitempty"`
	}{KeyVaultName: key.KeyVaultName, KeyName: key.KeyName, KeyVersion: key.KeyVersion}
	if spec.KeyVaultType == hyperv1.AzureManagedHSM {
		identity.KeyVaultType = string(spec.KeyVaultType)
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

// addEncryption gives the server its encryption configuration, and the plugins of a KMS.
func addEncryption(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	if ctx.HCP.Spec.SecretEncryption == nil {
		return nil
	}
	raw, _, err := encryptionConfig(ctx)
	if err != nil {
		return err
	}
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	main.Args = append(main.Args, "--encryption-provider-config="+encryptionDir+"/"+encryption.ConfigKey, "--encryption-provider-config-automatic-reload=false")
	kit.Mount(pod, Name, component.SecretVolume(encryption.ConfigSecret, encryption.ConfigSecret), encryptionDir)
	hash := encryption.ConfigHash(raw)
	// The second is the one by which our own operators see that all servers have a configuration.
	d.Spec.Template.Annotations = map[string]string{hashAnnotation: hash, encryption.HashAnnotation: hash}
	if kms := kmsOf(ctx.HCP); kms != nil {
		return addKMS(ctx, pod, kms)
	}
	return nil
}
