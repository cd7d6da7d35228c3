package oauthserver

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

func contextOf(t *testing.T, objs []client.Object, providers ...configv1.IdentityProvider) component.WorkloadContext {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{OAuth: &configv1.OAuthSpec{IdentityProviders: providers}}
	return component.WorkloadContext{Context: t.Context(), HCP: hcp, Reader: fake.NewClientBuilder().WithObjects(objs...).Build()}
}

func secretOf(name string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func bundleOf(name string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func TestIdentityProviders(t *testing.T) {
	gitHub := configv1.IdentityProviderConfig{Type: configv1.IdentityProviderTypeGitHub, GitHub: &configv1.GitHubIdentityProvider{
		ClientID: "id", ClientSecret: configv1.SecretNameReference{Name: "github"}, Organizations: []string{"org"}, CA: configv1.ConfigMapNameReference{Name: "ca"},
	}}
	htpasswd := configv1.IdentityProviderConfig{Type: configv1.IdentityProviderTypeHTPasswd, HTPasswd: &configv1.HTPasswdIdentityProvider{
		FileData: configv1.SecretNameReference{Name: "users"},
	}}
	openID := configv1.IdentityProviderConfig{Type: configv1.IdentityProviderTypeOpenID, OpenID: &configv1.OpenIDIdentityProvider{
		ClientID: "id", ClientSecret: configv1.SecretNameReference{Name: "openid"}, Issuer: "https://issuer",
	}}
	t.Run("When a provider is complete it should be configured with files by its index", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, []client.Object{secretOf("users"), secretOf("github"), bundleOf("ca")},
			configv1.IdentityProvider{Name: "local", IdentityProviderConfig: htpasswd}, configv1.IdentityProvider{Name: "hub", MappingMethod: "add", IdentityProviderConfig: gitHub})
		got, err := identityProviders(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ProvidersProblem(ctx)).To(Succeed())
		g.Expect(got).To(HaveLen(2))
		g.Expect(got[0].config).To(Equal(map[string]any{"name": "local", "challenge": true, "login": true, "mappingMethod": "claim", "provider": map[string]any{
			"apiVersion": "osin.config.openshift.io/v1", "kind": "HTPasswdPasswordIdentityProvider", "file": "/etc/oauth/idp/idp_secret_0_file-data/htpasswd",
		}}))
		g.Expect(got[1].config).To(Equal(map[string]any{"name": "hub", "challenge": false, "login": true, "mappingMethod": "add", "provider": map[string]any{
			"apiVersion": "osin.config.openshift.io/v1", "kind": "GitHubIdentityProvider", "clientID": "id", "organizations": []any{"org"},
			"clientSecret": map[string]any{"file": "/etc/oauth/idp/idp_secret_1_client-secret/clientSecret"}, "ca": "/etc/oauth/idp/idp_cm_1_ca/ca.crt",
		}}))
		g.Expect(got[1].files).To(Equal([]file{
			{component.SecretVolume("idp-secret-1-client-secret", "github"), "/etc/oauth/idp/idp_secret_1_client-secret"},
			{component.ConfigMapVolume("idp-cm-1-ca", "ca"), "/etc/oauth/idp/idp_cm_1_ca"},
		}))
	})
	for name, tc := range map[string]struct {
		bad  configv1.IdentityProvider
		says string
	}{
		"When its Secret is missing":      {configv1.IdentityProvider{Name: "hub", IdentityProviderConfig: gitHub}, "github.clientSecret.name: there is no Secret github in namespace ns"},
		"When it names no Secret":         {configv1.IdentityProvider{Name: "x", IdentityProviderConfig: configv1.IdentityProviderConfig{Type: "HTPasswd", HTPasswd: &configv1.HTPasswdIdentityProvider{}}}, "htpasswd.fileData.name is empty"},
		"When its type is unknown":        {configv1.IdentityProvider{Name: "x", IdentityProviderConfig: configv1.IdentityProviderConfig{Type: "Carrier Pigeon"}}, `type "Carrier Pigeon" is unknown`},
		"When its fields are missing":     {configv1.IdentityProvider{Name: "x", IdentityProviderConfig: configv1.IdentityProviderConfig{Type: "LDAP"}}, "ldap is missing"},
		"When its name is taken":          {configv1.IdentityProvider{Name: "local", IdentityProviderConfig: htpasswd}, "another provider has this name"},
		"When it has no name":             {configv1.IdentityProvider{IdentityProviderConfig: htpasswd}, "name is empty"},
		"When nobody knows its URLs":      {configv1.IdentityProvider{Name: "oidc", IdentityProviderConfig: openID}, "annotation idpoverrides.hypershift.openshift.io/oidc"},
		"When its annotation is not JSON": {configv1.IdentityProvider{Name: "broken", IdentityProviderConfig: openID}, "annotation idpoverrides.hypershift.openshift.io/broken is not the JSON"},
	} {
		t.Run(name+" it should be left out and named, and the others stay", func(t *testing.T) {
			g := NewWithT(t)
			ctx := contextOf(t, []client.Object{secretOf("users"), secretOf("openid")}, configv1.IdentityProvider{Name: "local", IdentityProviderConfig: htpasswd}, tc.bad)
			ctx.HCP.Annotations = map[string]string{"idpoverrides.hypershift.openshift.io/broken": "{"}
			got, err := identityProviders(ctx)
			g.Expect(got).To(HaveLen(1))
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			g.Expect(ProvidersProblem(ctx)).To(MatchError(HavePrefix("failed to initialize identity providers: spec.configuration.oauth.identityProviders[1]")))
		})
	}
	t.Run("When an annotation overrides an OpenID provider it should be configured by that", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, []client.Object{secretOf("openid")}, configv1.IdentityProvider{Name: "IAM", IdentityProviderConfig: openID})
		ctx.HCP.Annotations = map[string]string{"idpoverrides.hypershift.openshift.io/IAM": `{"urls":{"authorize":"https://a","token":"https://t"},"claims":{"email":["mail"]},"challenge":true}`}
		got, err := identityProviders(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got[0].config).To(HaveKeyWithValue("challenge", true))
		g.Expect(got[0].config["provider"]).To(And(
			HaveKeyWithValue("urls", map[string]any{"authorize": "https://a", "token": "https://t"}),
			HaveKeyWithValue("claims", map[string]any{"id": []any{"sub"}, "email": []any{"mail"}})))
	})
}

func TestAdaptSession(t *testing.T) {
	adapt := func(t *testing.T, ctx component.WorkloadContext) (*corev1.Secret, sessionSecrets) {
		t.Helper()
		g := NewWithT(t)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "oauth-openshift-session"}}
		g.Expect(adaptSession(ctx, secret)).To(Succeed())
		var file sessionSecrets
		g.Expect(yaml.Unmarshal(secret.Data[sessionKey], &file)).To(Succeed())
		return secret, file
	}
	t.Run("When there are no secrets it should make them, and then keep them", func(t *testing.T) {
		g := NewWithT(t)
		secret, file := adapt(t, contextOf(t, nil))
		g.Expect(file.Secrets).To(HaveLen(1))
		g.Expect(file.Secrets[0].Authentication).To(HaveLen(64))
		g.Expect(file.Secrets[0].Encryption).To(HaveLen(32))
		again, _ := adapt(t, contextOf(t, []client.Object{secret}))
		g.Expect(again.Data).To(Equal(secret.Data))
	})
	for name, content := range map[string]string{"When they are empty": "secrets: [{authentication: \"\", encryption: x}]", "When they cannot be read": "{", "When there are none": "secrets: []"} {
		t.Run(name+" it should make others", func(t *testing.T) {
			live := secretOf("oauth-openshift-session").(*corev1.Secret)
			live.Data = map[string][]byte{sessionKey: []byte(content)}
			_, file := adapt(t, contextOf(t, []client.Object{live}))
			NewWithT(t).Expect(file.Secrets[0].Authentication).To(HaveLen(64))
		})
	}
	t.Run("When it is a preview it should make none", func(t *testing.T) {
		ctx := contextOf(t, nil)
		ctx.Unsigned = true
		_, file := adapt(t, ctx)
		NewWithT(t).Expect(file.Secrets).To(BeEmpty())
	})
}
