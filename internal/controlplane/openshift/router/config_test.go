package router

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/testenv/bare"
)

func TestConfig(t *testing.T) {
	service := func(name, address string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: bare.Namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: address}}
	}
	for name, tc := range map[string]struct {
		routes   map[string]route
		forwards bool
		has, not []string
		err      string
	}{
		"When there is no Route it should serve nothing but its health": {has: []string{"monitor-uri /haproxy_ready"}, not: []string{"default_backend", "\nbackend"}},
		"When a Route is another router's it should be left out": {
			routes: map[string]route{"oauth": {host: "oauth.example.com", service: "oauth-openshift"}}, not: []string{"oauth"}},
		"When the API has two Routes it should be one backend, and the default": {
			routes: map[string]route{"kube-apiserver": {host: "a.example.com", service: "x", ours: true}, "kube-apiserver-internal": {host: "api.demo.hypershift.local", ours: true}},
			has:    []string{"-i a.example.com\n  use_backend kube_api", "-i api.demo.hypershift.local", "default_backend kube_api", "server kube_api 172.30.0.1:6443\n"}},
		"When the Service is IPv6 it should be in brackets": {
			routes: map[string]route{"konnectivity-server": {host: "k.example.com", service: "konnectivity-server", ours: true}}, has: []string{"server konnectivity [fd00::1]:8091\n"}},
		"When its Service is missing it should name both": {
			routes: map[string]route{"oauth": {host: "oauth.example.com", service: "oauth-openshift", ours: true}}, err: "route oauth: reading Service clusters-demo/oauth-openshift"},
		"When a host is no name it should be refused": {
			routes: map[string]route{"oauth": {host: "a\n  server evil", service: "oauth-openshift", ours: true}}, err: "no DNS name"},
		"When metrics are forwarded it should wait for their Route": {forwards: true,
			routes: map[string]route{"konnectivity-server": {host: "k.example.com", service: "konnectivity-server", ours: true}}, err: "waiting for Route metrics-proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := bare.HostedControlPlane(func(hcp *hyperv1.HostedControlPlane) {
				if tc.forwards {
					hcp.Spec.Monitoring.MetricsForwarding.Mode = hyperv1.MetricsForwardingForward
				}
			})
			ctx := bare.Context(t, hcp, service("kube-apiserver", "172.30.0.1"), service("konnectivity-server", "fd00::1"))
			got, err := config(ctx, tc.routes)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			for _, text := range tc.has {
				g.Expect(got).To(ContainSubstring(text))
			}
			for _, text := range tc.not {
				g.Expect(got).NotTo(ContainSubstring(text))
			}
		})
	}
}

func TestKeyVault(t *testing.T) {
	t.Run("When the key vault of ARO is private it should be reached by its private name", func(t *testing.T) {
		g := NewWithT(t)
		ctx := bare.Context(t, bare.HostedControlPlane(func(hcp *hyperv1.HostedControlPlane) {
			azure := &hyperv1.AzurePlatformSpec{}
			azure.AzureAuthenticationConfig.AzureAuthenticationConfigType = hyperv1.AzureAuthenticationTypeManagedIdentities
			hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: azure}
			kms := &hyperv1.AzureKMSSpec{KeyVaultAccess: hyperv1.AzureKeyVaultPrivate}
			kms.ActiveKey.KeyVaultName = "demo-kv"
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{KMS: &hyperv1.KMSSpec{Azure: kms}}
		}))
		got, err := config(ctx, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(And(ContainSubstring("-i demo-kv.vault.azure.net\n"), ContainSubstring("nameserver azure 168.63.129.16:53"),
			ContainSubstring("server keyvault demo-kv.vault.azure.net:443 resolvers azure_dns")))
	})
}

func TestWanted(t *testing.T) {
	on := func(platform hyperv1.PlatformSpec) component.WorkloadContext {
		return component.WorkloadContext{HCP: &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{Platform: platform}}}
	}
	aro := &hyperv1.AzurePlatformSpec{}
	aro.AzureAuthenticationConfig.AzureAuthenticationConfigType = hyperv1.AzureAuthenticationTypeManagedIdentities
	private := aro.DeepCopy()
	private.Topology = hyperv1.AzureTopologyPrivate
	for name, tc := range map[string]struct {
		platform hyperv1.PlatformSpec
		want     bool
		err      string
	}{
		"When a cluster on AWS is public it should have none": {platform: hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{EndpointAccess: hyperv1.Public}}},
		"When a cluster on AWS is private it should have one": {want: true, platform: hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{EndpointAccess: hyperv1.PublicAndPrivate}}},
		"When it is on IBM Cloud it should have none":         {platform: hyperv1.PlatformSpec{Type: hyperv1.IBMCloudPlatform}},
		"When ARO is public it should have none":              {platform: hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: aro}},
		"When ARO is private it should wait for names of Routes": {platform: hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: private},
			err: "waiting for HCP router routes: kube-apiserver-internal, konnectivity-server, ignition-server, oauth-internal"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := wanted(on(tc.platform))
			if tc.err != "" {
				g.Expect(err).To(MatchError(tc.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
