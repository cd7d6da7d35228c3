package kit

import (
	"bytes"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/pki"
)

// Kubeconfig says what a kubeconfig in a Secret consists of. Its bytes are those that package pki makes of the same, which keeps the Secrets, too.
type Kubeconfig struct {
	// Client is the Secret of the client certificate (tls.crt, tls.key).
	Client string
	// Server is where the hosted API is reached; KubeAPIServerURL when it is nil.
	Server func(component.WorkloadContext) string
	// Key of the Secret; "kubeconfig" when it is empty.
	Key string
	// NamedCertificates also trusts the certificates that users configured for the API: for what reaches it from outside.
	NamedCertificates bool
}

// Adapt fills the Secret in. What it is made of is waited for; a preview that leaves certificates out does without.
func (k Kubeconfig) Adapt() component.ManifestOption {
	return component.AdaptManifest(func(ctx component.WorkloadContext, secret *corev1.Secret) error {
		text, err := k.render(ctx)
		if err != nil {
			return fmt.Errorf("kubeconfig %s: %w", secret.Name, err)
		}
		key := k.Key
		if key == "" {
			key = pki.KubeconfigKey
		}
		secret.Data = map[string][]byte{key: text}
		return nil
	})
}

func (k Kubeconfig) render(ctx component.WorkloadContext) ([]byte, error) {
	server := component.InClusterURL(ctx.HCP)
	if k.Server != nil {
		server = k.Server(ctx)
	}
	trust, err := RootCA(ctx)
	if err != nil {
		return nil, err
	}
	if k.NamedCertificates {
		for _, named := range settings.APIServer(ctx.HCP).ServingCerts.NamedCertificates {
			cert, err := optionalSecret(ctx, named.ServingCertificate.Name)
			if err != nil {
				return nil, err
			}
			trust = append(trust, pki.OnlyCertificates(cert[pki.TLSCertKey])...)
		}
	}
	cert, err := optionalSecret(ctx, k.Client)
	if err != nil {
		return nil, err
	}
	if len(cert[pki.TLSCertKey]) == 0 && !ctx.Preview() {
		return nil, fmt.Errorf("waiting for the client certificate in Secret %s", k.Client)
	}
	return pki.RenderKubeconfig(server, trust, cert[pki.TLSCertKey], cert[pki.TLSKeyKey])
}

// RootCA is the authority of the hosted API's serving certificates, in PEM. It is waited for; a preview that leaves certificates out does without.
func RootCA(ctx component.WorkloadContext) ([]byte, error) {
	bundle := &corev1.ConfigMap{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: pki.RootCABundle}, bundle)
	if err == nil && bundle.Data[pki.CACertKey] != "" {
		return []byte(bundle.Data[pki.CACertKey]), nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", pki.RootCABundle, err)
	}
	signer, err := optionalSecret(ctx, pki.RootCA)
	if err != nil {
		return nil, err
	}
	if len(signer[pki.CACertKey]) == 0 && !ctx.Preview() {
		return nil, errors.New("waiting for the root certificate authority in Secret " + pki.RootCA)
	}
	return bytes.Clone(signer[pki.CACertKey]), nil
}

// optionalSecret is the data of a Secret, nil when it isn't there.
func optionalSecret(ctx component.WorkloadContext, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	return secret.Data, nil
}
