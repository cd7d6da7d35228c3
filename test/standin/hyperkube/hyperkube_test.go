package hyperkube

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func golden(t *testing.T, file, key string) []byte {
	t.Helper()
	raw, err := os.ReadFile("../../../internal/cli/render/testdata/openshift/golden/" + file)
	if err != nil {
		t.Fatal(err)
	}
	cm := corev1.ConfigMap{}
	if err := yaml.Unmarshal(raw, &cm); err != nil {
		t.Fatal(err)
	}
	return []byte(cm.Data[key])
}

func TestAPIServer(t *testing.T) {
	raw := golden(t, "plain/kube-apiserver/configmap_kas-config.yaml", "config.json")
	t.Run("When a configuration is translated it should have what plain Kubernetes takes", func(t *testing.T) {
		g := NewWithT(t)
		s, err := APIServer(raw, []string{"--v=2"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Args).To(ContainElements(
			"--authorization-mode=RBAC,Node", "--secure-port=6443", "--bind-address=0.0.0.0", "--service-cluster-ip-range=172.31.0.0/16", "--tls-min-version=VersionTLS12",
			"--feature-gates=StructuredAuthenticationConfiguration=true", "--v=2",
			"--service-account-key-file=/etc/kubernetes/secrets/svcacct-key/service-account.pub",
			"--tls-sni-cert-key=/etc/kubernetes/certs/server-private/tls.crt,/etc/kubernetes/certs/server-private/tls.key",
		))
		g.Expect(strings.Join(s.Args, " ")).NotTo(ContainSubstring("openshift.io/"))
		g.Expect(s.Needs).To(ContainElement("/etc/kubernetes/oauth/oauthMetadata.json"))
		g.Expect(string(s.Files[AdmissionFile])).To(And(ContainSubstring("PodSecurityConfiguration"), Not(ContainSubstring("ExternalIPRanger"))))
	})
	for what, tt := range map[string]struct{ from, to, want string }{
		"a field that nobody reads":     {`"consolePublicURL"`, `"somethingElse":1,"consolePublicURL"`, "somethingElse"},
		"no subnet of Services":         {`"servicesSubnet":"172.31.0.0/16"`, `"servicesSubnet":""`, "servicesSubnet"},
		"two certificates to serve":     {`"tls-cert-file":["/etc/kubernetes/certs/server/tls.crt"]`, `"tls-cert-file":["/other"]`, "apiServerArguments.tls-cert-file"},
		"another kind":                  {`"kind":"KubeAPIServerConfig"`, `"kind":"Other"`, "not a KubeAPIServerConfig"},
		"an unknown plugin's settings":  {`"PodSecurity":{`, `"Mystery":{`, "admission.pluginConfig[Mystery]"},
		"an address that isn't one":     {`"bindAddress":"0.0.0.0:6443"`, `"bindAddress":"0.0.0.0"`, "servingInfo.bindAddress"},
		"no key of service accounts in": {`["/etc/kubernetes/secrets/svcacct-key/service-account.pub"]`, `[]`, "serviceAccountPublicKeyFiles"},
	} {
		t.Run("When the configuration has "+what+" it should say so", func(t *testing.T) {
			g := NewWithT(t)
			changed := strings.Replace(string(raw), tt.from, tt.to, 1)
			g.Expect(changed).NotTo(Equal(string(raw)))
			_, err := APIServer([]byte(changed), nil)
			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestControllerManager(t *testing.T) {
	g := NewWithT(t)
	raw := golden(t, "plain/kube-controller-manager/configmap_kcm-config.yaml", "config.json")
	s, err := ControllerManager(raw, []string{"--leader-elect=true", "--feature-gates=ExternalOIDC=true", "--feature-gates=WatchList=false"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Args).To(Equal([]string{"--leader-elect-renew-deadline=12s", "--leader-elect-retry-period=3s", "--leader-elect=true", "--feature-gates=WatchList=false"}),
		"When arguments are in the configuration and on the command line they should be given once")
	_, err = ControllerManager([]byte(`{"apiVersion":"kubecontrolplane.config.openshift.io/v1","kind":"KubeControllerManagerConfig","other":1}`), nil)
	g.Expect(err).To(MatchError(ContainSubstring("other")), "When a field is unknown it should say so")
}
