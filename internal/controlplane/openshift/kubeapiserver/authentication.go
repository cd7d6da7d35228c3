package kubeapiserver

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	"hcp.internal/platform/internal/controlplane/component"
	kubernetes "hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/pki"
)

const (
	authenticationKey = "auth.json"
	oauthMetadataKey  = "oauthMetadata.json"
)

// authenticationVersion is the one that all payloads read.
const authenticationVersion = "apiserver.config.k8s.io/v1alpha1"

// adaptAuthentication writes which tokens of OIDC providers the server takes.
func adaptAuthentication(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	if settings.Authentication(ctx.HCP).Type != configv1.AuthenticationTypeOIDC {
		return nil
	}
	config, err := kubernetes.Authentication(ctx)
	if err != nil {
		return err
	}
	config.APIVersion = authenticationVersion
	raw, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("writing the authentication configuration: %w", err)
	}
	cm.Data = map[string]string{authenticationKey: string(raw)}
	return nil
}

// adaptOAuthMetadata says where clients find OpenShift's OAuth server, or what the user says instead.
func adaptOAuthMetadata(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	if name := settings.Authentication(ctx.HCP).OAuthMetadata.Name; name != "" {
		const key = "oauthMetadata"
		given := &corev1.ConfigMap{}
		if err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}, given); err != nil {
			return fmt.Errorf("spec.configuration.authentication.oauthMetadata: reading ConfigMap %s: %w", name, err)
		}
		if given.Data[key] == "" {
			return fmt.Errorf("spec.configuration.authentication.oauthMetadata: ConfigMap %s has no key %s", name, key)
		}
		cm.Data = map[string]string{oauthMetadataKey: given.Data[key]}
		return nil
	}
	issuer := oauthURL(ctx)
	return kit.EditConfig(cm, oauthMetadataKey, func(metadata map[string]any) error {
		metadata["issuer"], metadata["authorization_endpoint"], metadata["token_endpoint"] = issuer, issuer+"/oauth/authorize", issuer+"/oauth/token"
		return nil
	})
}

// adaptTokenWebhook writes how the server reaches the OAuth API server, which knows the tokens of OpenShift's own users.
func adaptTokenWebhook(ctx component.WorkloadContext, secret *corev1.Secret) error {
	trust, err := kit.RootCA(ctx)
	if err != nil {
		return err
	}
	cert := &corev1.Secret{}
	err = ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: pki.AuthenticatorClient}, cert)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", pki.AuthenticatorClient, err)
	}
	if len(cert.Data[pki.TLSCertKey]) == 0 && !ctx.Preview() {
		return errors.New("waiting for the client certificate in Secret " + pki.AuthenticatorClient)
	}
	const cluster, user, context = "local-cluster", "openshift-authenticator", "local-context"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server:                   "https://openshift-oauth-apiserver." + ctx.HCP.Namespace + ".svc:443/apis/oauth.openshift.io/v1/tokenreviews",
		CertificateAuthorityData: trust,
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: cert.Data[pki.TLSCertKey], ClientKeyData: cert.Data[pki.TLSKeyKey]}
	config.Contexts[context] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = context
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	secret.Data = map[string][]byte{pki.KubeconfigKey: raw}
	return nil
}
