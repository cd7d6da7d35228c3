package openshift

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// singleton is what becomes of a singleton of config.openshift.io when a HostedCluster says something of it; live is what is there, nil: nothing.
func singleton(t *testing.T, kind string, configuration *hyperv1.ClusterConfiguration, live *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	in := scenario(t, "plain")
	in.HCP.Spec.Configuration = configuration
	actions, err := settings(in)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, a := range actions {
		if a.Object.GetObjectKind().GroupVersionKind().Kind == kind && a.Do == Edit {
			u, err := changed(a, live)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			return u
		}
	}
	t.Fatalf("nothing is done about %s", kind)
	return nil
}

// settingsOf are HostedClusters that say something of a singleton, and a field that shows it.
var settingsOf = map[string]struct {
	says  hyperv1.ClusterConfiguration
	field string
}{
	"Authentication": {hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC}}, "type"},
	"Image":          {hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{ExternalRegistryHostnames: []string{"registry.example.com"}}}, "externalRegistryHostnames"},
	"APIServer":      {hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{AdditionalCORSAllowedOrigins: []string{"example.com"}}}, "additionalCORSAllowedOrigins"},
	"Ingress":        {hyperv1.ClusterConfiguration{Ingress: &configv1.IngressSpec{AppsDomain: "example.com"}}, "appsDomain"},
	"Proxy":          {hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://192.0.2.1"}}, "httpProxy"},
	"Network":        {hyperv1.ClusterConfiguration{Network: &configv1.NetworkSpec{ServiceNodePortRange: "30000-33000"}}, "serviceNodePortRange"},
}

func TestSettingsThatAreRemoved(t *testing.T) {
	for kind, tc := range settingsOf {
		t.Run("When a HostedCluster says nothing more of "+kind+" what it said should go from the hosted cluster, and our defaults stay", func(t *testing.T) {
			g := NewWithT(t)
			said := singleton(t, kind, &tc.says, nil)
			g.Expect(said.Object["spec"]).To(HaveKey(tc.field))
			said.SetResourceVersion("1")
			g.Expect(singleton(t, kind, &tc.says, said)).To(Equal(said), "nothing is written twice")

			now := singleton(t, kind, nil, said)
			g.Expect(now.Object["spec"]).To(Equal(singleton(t, kind, nil, nil).Object["spec"]))
			g.Expect(now.GetAnnotations()).To(BeEmpty())
			g.Expect(singleton(t, kind, nil, now)).To(Equal(now), "nothing is written twice")
		})
		t.Run("When a HostedCluster never said anything of "+kind+" the hosted cluster's own should stay", func(t *testing.T) {
			g := NewWithT(t)
			own := singleton(t, kind, &tc.says, nil)
			own.SetAnnotations(nil)
			g.Expect(singleton(t, kind, nil, own).Object["spec"]).To(HaveKey(tc.field))
		})
	}
}

func TestNetworkSettings(t *testing.T) {
	diagnostics := configv1.NetworkDiagnostics{Mode: configv1.NetworkDiagnosticsDisabled}
	of := func(more *configv1.NetworkSpec) *hyperv1.ClusterConfiguration {
		return &hyperv1.ClusterConfiguration{Network: more}
	}
	t.Run("When one of two fields is removed the other should stay", func(t *testing.T) {
		g := NewWithT(t)
		said := singleton(t, "Network", of(&configv1.NetworkSpec{NetworkDiagnostics: diagnostics, ServiceNodePortRange: "30000-33000"}), nil)
		now := singleton(t, "Network", of(&configv1.NetworkSpec{ServiceNodePortRange: "30000-33000"}), said)
		g.Expect(now.Object["spec"]).To(And(HaveKey("serviceNodePortRange"), Not(HaveKey("networkDiagnostics"))))
	})
	t.Run("When diagnostics are the hosted cluster's own they should stay", func(t *testing.T) {
		g := NewWithT(t)
		own := singleton(t, "Network", of(&configv1.NetworkSpec{NetworkDiagnostics: diagnostics}), nil)
		own.SetAnnotations(nil)
		for range 2 {
			own = singleton(t, "Network", of(&configv1.NetworkSpec{ServiceNodePortRange: "30000-33000"}), own)
			g.Expect(own.Object["spec"]).To(HaveKey("networkDiagnostics"))
		}
	})
}
