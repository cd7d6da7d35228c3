package kit

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

func TestTLSOf(t *testing.T) {
	of := func(p *configv1.TLSSecurityProfile) TLS {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{TLSSecurityProfile: p}}
		return TLSOf(hcp)
	}
	for name, tc := range map[string]struct {
		profile *configv1.TLSSecurityProfile
		minimum string
		suites  int
		flags   int
	}{
		"When there is no profile it should be Intermediate":     {nil, "VersionTLS12", 6, 2},
		"When it is Old it should have the four older suites":    {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileOldType}, "VersionTLS10", 10, 2},
		"When it is Modern there should be nothing to choose":    {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}, "VersionTLS13", 0, 1},
		"When it is Custom it should take what has another name": {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType, Custom: &configv1.CustomTLSProfile{MinTLSVersion: configv1.VersionTLS11, Ciphers: []string{"TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-SHA"}}}, "VersionTLS11", 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := of(tc.profile)
			g.Expect(got.MinVersion).To(Equal(tc.minimum))
			g.Expect(got.CipherSuites).To(HaveLen(tc.suites))
			g.Expect(got.Args()).To(HaveLen(tc.flags))
		})
	}
}

func TestCapabilities(t *testing.T) {
	t.Run("When some are enabled and others disabled the set should be sorted, without twins", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(Capabilities(hcp)).To(HaveLen(16))
		hcp.Spec.Capabilities = &hyperv1.Capabilities{Enabled: []hyperv1.OptionalCapability{"baremetal", "Console"}, Disabled: []hyperv1.OptionalCapability{"ImageRegistry"}}
		got := Capabilities(hcp)
		g.Expect(got).To(HaveLen(16))
		g.Expect(got).To(ContainElement("baremetal"))
		g.Expect(HasCapability(hcp, hyperv1.ImageRegistryCapability)).To(BeFalse())
	})
}

func TestManagementProxy(t *testing.T) {
	t.Run("When there is a proxy a container should get it with all exceptions, sorted", func(t *testing.T) {
		g := NewWithT(t)
		c := &corev1.Container{Env: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "old"}, {Name: "A", Value: "b"}}}
		ctx := component.WorkloadContext{}
		ctx.Environment.Proxy = component.Proxy{HTTPS: "https://p", No: "z,kube-apiserver"}
		component.ManagementProxy(ctx, c, "metadata.internal")
		g.Expect(c.Env).To(Equal([]corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "HTTPS_PROXY", Value: "https://p"}, {Name: "NO_PROXY", Value: "kube-apiserver,metadata.internal,z"}}))
		component.ManagementProxy(component.WorkloadContext{}, c)
		g.Expect(c.Env).To(Equal([]corev1.EnvVar{{Name: "A", Value: "b"}}))
	})
}

func TestEditConfig(t *testing.T) {
	t.Run("When a configuration is changed what it had should stay, and what is empty not be written", func(t *testing.T) {
		g := NewWithT(t)
		cm := &corev1.ConfigMap{Data: map[string]string{"c": "a: {b: 1}\nlist: [x]\n"}}
		g.Expect(EditConfig(cm, "c", func(config map[string]any) error {
			Section(config, "a", "d")["e"] = true
			SetUnlessEmpty(config, "nothing", map[string]any{})
			SetUnlessEmpty(config, "neither", nil)
			SetUnlessEmpty(config, "zero", false)
			return nil
		})).To(Succeed())
		g.Expect(cm.Data["c"]).To(Equal("a:\n  b: 1\n  d:\n    e: true\nlist:\n- x\nzero: false\n"))
		cm.Data["c"] = "{"
		g.Expect(EditConfig(cm, "c", nil)).To(MatchError(ContainSubstring("parsing key c")))
	})
}

func TestVaultName(t *testing.T) {
	for name, ok := range map[string]bool{"demo-cpo": true, "utf-8": true, "": false, "a\n    objectType: key": false, "a: b": false} {
		t.Run("When a name is to be put into the vault's list it should be one", func(t *testing.T) {
			NewWithT(t).Expect(vaultName.MatchString(name)).To(Equal(ok), name)
		})
	}
}

func TestARO(t *testing.T) {
	managed := &hyperv1.AzurePlatformSpec{AzureAuthenticationConfig: hyperv1.AzureAuthenticationConfiguration{
		AzureAuthenticationConfigType: hyperv1.AzureAuthenticationTypeManagedIdentities,
	}}
	for name, tc := range map[string]struct {
		platform hyperv1.PlatformSpec
		service  string
		want     bool
	}{
		"When components on Azure have managed identities it should be ARO":         {platform: hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: managed}, want: true},
		"When the control plane is on another platform it should not, nevertheless": {platform: hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, Azure: managed}},
		"When components have workload identities the service should not count":     {platform: hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{}}, service: component.AROHCP},
		"When the platform says nothing the service should decide":                  {service: component.AROHCP, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := component.WorkloadContext{HCP: &hyperv1.HostedControlPlane{}}
			ctx.HCP.Spec.Platform, ctx.Environment.ManagedService = tc.platform, tc.service
			NewWithT(t).Expect(ARO(ctx)).To(Equal(tc.want))
		})
	}
}
