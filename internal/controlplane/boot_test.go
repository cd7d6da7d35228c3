package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/testenv/bare"
)

// everything that changes the arguments, in a control plane that fits on one machine.
func everything(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
		ActiveKey: corev1.LocalObjectReference{Name: "new-key"}, BackupKey: &corev1.LocalObjectReference{Name: "old-key"},
	}}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{
		Audit: configv1.Audit{
			Profile:     configv1.WriteRequestBodiesAuditProfileType,
			CustomRules: []configv1.AuditCustomRule{{Group: "blue", Profile: configv1.AllRequestBodiesAuditProfileType}},
		},
		TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileOldType},
		ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{{
			Names: []string{"api.example.com"}, ServingCertificate: configv1.SecretNameReference{Name: "kas-server-crt"},
		}}},
	}}
	hcp.Spec.Configuration.Scheduler = &configv1.SchedulerSpec{Profile: configv1.HighNodeUtilization}
	hcp.Spec.Configuration.FeatureGate = &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{
		FeatureSet: configv1.CustomNoUpgrade, CustomNoUpgrade: &configv1.CustomFeatureGates{Disabled: []configv1.FeatureGateName{"WatchList"}},
	}}
	hcp.Spec.Configuration.Authentication = &configv1.AuthenticationSpec{
		Type: configv1.AuthenticationTypeOIDC,
		OIDCProviders: []configv1.OIDCProvider{{
			Name:          "corporate",
			Issuer:        configv1.TokenIssuer{URL: "https://localhost:1/oidc", Audiences: []configv1.TokenAudience{"console"}},
			ClaimMappings: configv1.TokenClaimMappings{Username: configv1.UsernameClaimMapping{Claim: "sub"}, Groups: configv1.PrefixedClaimMapping{Claim: "groups"}},
			ClaimValidationRules: []configv1.TokenClaimValidationRule{{
				Type: configv1.TokenValidationRuleTypeRequiredClaim, RequiredClaim: &configv1.TokenRequiredClaim{Claim: "tenant", RequiredValue: "blue"},
			}},
		}},
	}
	hcp.Annotations[hyperv1.KubeAPIServerServiceAccountTokenMaxExpiration] = "7200"
}

func TestBoot(t *testing.T) {
	t.Run("When programs get what is rendered for them they should become a control plane", func(t *testing.T) {
		g := NewWithT(t)
		objs := append(bare.Credentials(t), bare.EncryptionKey("new-key", "n"), bare.EncryptionKey("old-key", "o"))
		pods, others := bare.Render(t, bare.Context(t, bare.HostedControlPlane(everything), objs...), Components())
		m := bare.NewMachine(t, append(objs, others...))
		// In the worst order: each before what it depends on.
		for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver"} {
			m.Start(name, pods[name])
		}
		t.Logf("kube-controller-manager is healthy after %s, without an API server", m.Answers(t.Context(), "https", "kube-controller-manager", "/healthz"))
		m.Start("etcd", pods["etcd"])
		t.Logf("etcd is ready after %s", m.Answers(t.Context(), "http", "metrics", "/readyz"))
		t.Logf("kube-apiserver is ready %s later", m.Answers(t.Context(), "https", "api", "/readyz"))

		kubeconfig := m.File("Secret", "service-network-admin-kubeconfig", "kubeconfig")
		for range 2 { // The second time there is nothing to do.
			g.Expect(kubeapiserver.Bootstrap(t.Context(), kubeconfig)).To(Succeed())
		}
		t.Logf("kube-scheduler is ready %s later", m.Answers(t.Context(), "https", "kube-scheduler", "/readyz"))
	})
}
