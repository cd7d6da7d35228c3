package checks

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// rendered is a configuration as the operators make it.
func rendered(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile("../../../internal/cli/render/testdata/openshift/golden/plain/" + file)
	if err != nil {
		t.Fatal(err)
	}
	cm := corev1.ConfigMap{}
	if err := yaml.Unmarshal(raw, &cm); err != nil {
		t.Fatal(err)
	}
	return []byte(cm.Data["config.yaml"])
}

func TestConfigurations(t *testing.T) {
	const (
		oapi    = "openshift-apiserver/configmap_openshift-apiserver.yaml"
		ocm     = "openshift-controller-manager/configmap_openshift-controller-manager-config.yaml"
		osin    = "oauth-openshift/configmap_oauth-openshift.yaml"
		generic = "cluster-storage-operator/configmap_cluster-storage-operator-config.yaml"
	)
	readers := map[string]func([]byte) (Config, error){
		oapi: OpenShiftAPIServer, ocm: OpenShiftControllerManager, osin: Osin, generic: GenericController,
		"openshift-route-controller-manager/configmap_openshift-route-controller-manager-config.yaml": OpenShiftControllerManager,
		"cluster-policy-controller/configmap_cluster-policy-controller-config.yaml":                   OpenShiftControllerManager,
		"machine-approver/configmap_machine-approver-config.yaml":                                     MachineApprover,
		"cluster-image-registry-operator/configmap_image-registry-controller-config.yaml":             GenericController,
		"csi-snapshot-controller-operator/configmap_csi-snapshot-controller-operator-config.yaml":     GenericController,
	}
	for file, read := range readers {
		t.Run("When "+file+" is read it should be accepted, and refused with a field more", func(t *testing.T) {
			g := NewWithT(t)
			raw := rendered(t, file)
			_, err := read(raw)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = read(append(raw, []byte("\nnobodyReadsThis: 1\n")...))
			g.Expect(err).To(MatchError(ContainSubstring("nobodyReadsThis")))
		})
	}
	t.Run("When a configuration refers to files they should be listed", func(t *testing.T) {
		g := NewWithT(t)
		c, err := OpenShiftAPIServer(rendered(t, oapi))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Files).To(ConsistOf("/etc/kubernetes/audit-config/policy.yaml"))
		g.Expect(c.Authorities).To(ConsistOf("/etc/kubernetes/certs/client-ca/ca.crt", "/etc/kubernetes/certs/etcd-client-ca/ca.crt"))
		g.Expect(c.Etcd.URLs).To(ConsistOf("https://etcd-client:2379"))
		c, err = Osin(rendered(t, osin))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Files).To(ContainElement("/etc/kubernetes/secrets/session/v4-0-config-system-session"))
	})
	for _, tt := range []struct{ file, from, to, want string }{
		{oapi, "kind: OpenShiftAPIServerConfig", "kind: Other", "the configuration is a openshiftcontrolplane.config.openshift.io/v1 Other"},
		{oapi, "VersionTLS12", "TLS12", "servingInfo.minTLSVersion"},
		{oapi, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256", "is no cipher suite; use IANA names"},
		{oapi, "  subdomain: apps.demo.example.com", "  subdomain: ''", "routingConfig.subdomain"},
		{oapi, "  ca: /etc/kubernetes/certs/etcd-client-ca/ca.crt\n", "", "storageConfig: ca, certFile and keyFile"},
		{oapi, "  audit-policy-file:\n  - /etc/kubernetes/audit-config/policy.yaml\n", "", "flag --audit-policy-file is missing"},
		{oapi, "  audit-log-format:", "  audit-log-fromat:", "flag --audit-log-fromat is unknown"},
		{ocm, "- ExternalOIDC=true", "- ExternalOIDC", "featureGates"},
		{ocm, "bindAddress: 0.0.0.0:8443", "bindAddress: localhost:8443", "names a host"},
		{osin, "masterPublicURL: https:", "masterPublicURL: http:", "oauthConfig.masterPublicURL"},
		{osin, "  masterCA: /etc/kubernetes/certs/master-ca/ca.crt\n", "", "masterCA"},
		{generic, "bindAddress: 0.0.0.0:8443", "bindNetwork: tcp", "servingInfo.bindAddress"},
	} {
		t.Run("When "+tt.from+" becomes "+tt.to+" it should say what is wrong", func(t *testing.T) {
			g := NewWithT(t)
			raw := string(rendered(t, tt.file))
			changed := strings.Replace(raw, tt.from, tt.to, 1)
			g.Expect(changed).NotTo(Equal(raw))
			_, err := readers[tt.file]([]byte(changed))
			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestIdentityProviders(t *testing.T) {
	const file = "/etc/oauth/idp/idp_secret_0_file-data/htpasswd"
	for what, tt := range map[string]struct{ raw, want string }{
		"complete":          {`{"apiVersion":"osin.config.openshift.io/v1","kind":"HTPasswdPasswordIdentityProvider","file":"` + file + `"}`, ""},
		"without its file":  {`{"apiVersion":"osin.config.openshift.io/v1","kind":"HTPasswdPasswordIdentityProvider"}`, "must have file"},
		"of no kind":        {`{"apiVersion":"osin.config.openshift.io/v1","kind":"Mystery"}`, "is no kind of identity provider"},
		"with a field more": {`{"apiVersion":"osin.config.openshift.io/v1","kind":"HTPasswdPasswordIdentityProvider","file":"` + file + `","x":1}`, "x"},
		"with a secret in the configuration": {
			`{"apiVersion":"osin.config.openshift.io/v1","kind":"GoogleIdentityProvider","clientID":"a","clientSecret":{"value":"s3cret"}}`, "must be in a file",
		},
		"with a file elsewhere": {`{"apiVersion":"osin.config.openshift.io/v1","kind":"HTPasswdPasswordIdentityProvider","file":"/tmp/x"}`, "is not below /etc/oauth/idp"},
	} {
		t.Run("When an identity provider is "+what+" it should be told", func(t *testing.T) {
			g := NewWithT(t)
			files, _, err := identityProvider("p", "claim", []byte(tt.raw))
			if tt.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(files).To(ConsistOf(file))
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
		})
	}
}
