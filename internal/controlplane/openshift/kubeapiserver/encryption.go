package kubeapiserver

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

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
	config, err := nextConfig(ctx)
	if err != nil {
		return err
	}
	secret.Data, secret.ResourceVersion = map[string][]byte{encryption.ConfigKey: config.raw}, config.version
	return nil
}

// encryptionConfig is the next encryption configuration, the resourceVersion of the one that it was decided from, and the keys of clouds in it, which need plugins.
type encryptionConfig struct {
	raw     []byte
	version string
	plugins []encryption.Key
}

func nextConfig(ctx component.WorkloadContext) (encryptionConfig, error) {
	kms, layout := kmsOf(ctx.HCP), encryption.Layout{Resources: []string{"secrets"}}
	if ctx.HCP.Spec.SecretEncryption.Type == hyperv1.KMS {
		if err := complete(kms); err != nil {
			return encryptionConfig{}, err
		}
		layout = encryption.Layout{Resources: kmsResources, Socket: socketsOf(kms), Timeout: kmsTimeout}
	}
	if kms != nil && kms.IBMCloud != nil && kms.Provider == hyperv1.IBMCloud {
		// One plugin has all keys, and chooses among them.
		raw, err := layout.Config([]encryption.Key{{Name: "ibmv2", Form: encryption.InCloud}})
		return encryptionConfig{raw: raw}, err
	}
	keys, version, err := kubernetes.NextKeys(ctx)
	if err != nil {
		return encryptionConfig{}, err
	}
	if keys, err = encryption.Resolve(keys, ctx.HCP); err != nil {
		return encryptionConfig{}, err
	}
	config := encryptionConfig{version: version}
	for _, key := range keys {
		switch {
		case key.Form == encryption.InPlugin:
			return config, fmt.Errorf("annotation %s is for releases of Kubernetes: remove it", encryption.PluginAnnotation)
		case key.Form == encryption.InCloud && kms == nil:
			return config, errors.New("spec.secretEncryption.type can't change from kms to aescbc: what is stored needs the keys of the KMS; go back to kms")
		case key.Form == encryption.InCloud:
			config.plugins = append(config.plugins, key)
		}
	}
	config.raw, err = layout.Config(keys)
	return config, err
}

// complete refuses a KMS without its section.
func complete(kms *hyperv1.KMSSpec) error {
	switch {
	case kms == nil:
		return errors.New("spec.secretEncryption.kms is missing")
	case kms.Provider == hyperv1.AWS && kms.AWS != nil, kms.Provider == hyperv1.Azure && kms.Azure != nil, kms.Provider == hyperv1.IBMCloud && kms.IBMCloud != nil:
		return nil
	}
	return fmt.Errorf("spec.secretEncryption.kms.provider is %q, and its section is missing", kms.Provider)
}

// socketsOf are where the plugins listen, by the place of their keys: that which writes, then those which read.
func socketsOf(kms *hyperv1.KMSSpec) func(place int) string {
	return func(place int) string {
		switch kms.Provider {
		case hyperv1.AWS:
			return awsSocketDir + placed(awsActiveSocket, awsBackupSocket, place)
		case hyperv1.Azure:
			return azureSocketDir + placed(azureActiveSocket, azureBackupSocket, place)
		}
		return "/tmp/keyprotectprovider.sock"
	}
}

// placed is the name of something of the plugin at a place. A third is needed only while keys change faster than what is stored is written again.
func placed(active, backup string, place int) string {
	switch place {
	case 0:
		return active
	case 1:
		return backup
	}
	return fmt.Sprintf("%s-%d", backup, place)
}

// addEncryption gives the server its encryption configuration, and the plugins of a KMS.
func addEncryption(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	if ctx.HCP.Spec.SecretEncryption == nil {
		return nil
	}
	config, err := nextConfig(ctx)
	if err != nil {
		return err
	}
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	main.Args = append(main.Args, "--encryption-provider-config="+encryptionDir+"/"+encryption.ConfigKey, "--encryption-provider-config-automatic-reload=false")
	kit.Mount(pod, Name, component.SecretVolume(encryption.ConfigSecret, encryption.ConfigSecret), encryptionDir)
	hash := encryption.ConfigHash(config.raw)
	// The second is the one by which our own operators see that all servers have a configuration.
	d.Spec.Template.Annotations = map[string]string{hashAnnotation: hash, encryption.HashAnnotation: hash}
	if kms := kmsOf(ctx.HCP); kms != nil {
		return addKMS(ctx, pod, kms, config.plugins)
	}
	return nil
}
