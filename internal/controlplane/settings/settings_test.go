package settings

import (
	"crypto/tls"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func withTLS(profile *configv1.TLSSecurityProfile) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{TLSSecurityProfile: profile}}
	return hcp
}

func TestTLS(t *testing.T) {
	for name, tc := range map[string]struct {
		profile *configv1.TLSSecurityProfile
		min     string
		etcd    string
		suites  int
		etcdHas bool // cipher suites
	}{
		"When there is no profile it should be Intermediate":        {min: "VersionTLS12", etcd: "TLS1.2", suites: 6, etcdHas: true},
		"When it is Old it should take old clients":                 {profile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileOldType}, min: "VersionTLS10", etcd: "TLS1.2", suites: 18, etcdHas: true},
		"When it is Modern it should have no suites to choose from": {profile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}, min: "VersionTLS13", etcd: "TLS1.3"},
		"When it is Custom it should take what Go has of it": {profile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType, Custom: &configv1.CustomTLSProfile{
			MinTLSVersion: configv1.VersionTLS11,
			Ciphers:       []string{"ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES256-GCM-SHA384", "TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"},
		}}, min: "VersionTLS11", etcd: "TLS1.2", suites: 2, etcdHas: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := TLSOf(withTLS(tc.profile))
			g.Expect(got.MinVersion).To(Equal(tc.min))
			g.Expect(got.CipherSuites).To(HaveLen(tc.suites))
			g.Expect(got.EtcdMinVersion()).To(Equal(tc.etcd))
			g.Expect(len(got.EtcdCipherSuites()) > 0).To(Equal(tc.etcdHas))
		})
	}
	t.Run("When a suite has a name it should be one that Go knows", func(t *testing.T) {
		g := NewWithT(t)
		var known []string
		for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
			known = append(known, suite.Name)
		}
		for _, name := range slices.Concat(intermediate, old) {
			g.Expect(iana).To(HaveKey(name))
		}
		for _, name := range iana {
			g.Expect(known).To(ContainElement(name))
		}
	})
}

func TestSettings(t *testing.T) {
	t.Run("When no port is named, or 443, the pod should listen on 6443", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(APIPodPort(hcp)).To(BeEquivalentTo(6443))
		for port, want := range map[int32]int32{443: 6443, 0: 6443, 7443: 7443} {
			hcp.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{Port: ptr.To(port)}
			g.Expect(APIPodPort(hcp)).To(Equal(want))
		}
	})
	t.Run("When feature gates are custom they should become a flag in a fixed order", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(FeatureGates(hcp)).To(BeEmpty())
		custom := &configv1.CustomFeatureGates{Enabled: []configv1.FeatureGateName{"B", "A"}, Disabled: []configv1.FeatureGateName{"C"}}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{FeatureGate: &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{
			FeatureSet: configv1.TechPreviewNoUpgrade, CustomNoUpgrade: custom,
		}}}
		g.Expect(FeatureGates(hcp)).To(BeEmpty(), "a set of OpenShift's means nothing to Kubernetes")
		hcp.Spec.Configuration.FeatureGate.FeatureSet = configv1.CustomNoUpgrade
		g.Expect(FeatureGates(hcp)).To(Equal([]string{"--feature-gates=A=true,B=true,C=false"}))
	})
	t.Run("When the first cluster network is IPv6 servers should listen on it", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(IPv6(hcp)).To(BeFalse())
		hcp.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "fd01::/48"}}
		g.Expect(IPv6(hcp)).To(BeTrue())
	})
}
