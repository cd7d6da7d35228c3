package install

import corev1 "k8s.io/api/core/v1"

const (
	// trustBundleFolder is where the operators find certificates that they trust besides those of their image.
	trustBundleFolder = "/etc/hypershift/trusted-ca"
	// certificateFolders are those that programs in Go look into; naming folders doesn't take away the image's own file.
	certificateFolders = "/etc/ssl/certs:" + trustBundleFolder
	trustBundleVolume  = "trusted-ca"
	trustBundleHash    = "hypershift.openshift.io/additional-trust-bundle-hash"
)

func trustBundle(o Options) readOnce {
	return readOnce{content: o.TrustBundle, configMap: trustBundleName, key: trustBundleKey, volume: trustBundleVolume, folder: trustBundleFolder, hash: trustBundleHash}
}

// trust makes the first container of a Pod trust the certificates.
func trust(o Options, template *corev1.PodTemplateSpec) {
	if c := trustBundle(o).mount(template); c != nil {
		c.Env = append(c.Env, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: certificateFolders})
	}
}
