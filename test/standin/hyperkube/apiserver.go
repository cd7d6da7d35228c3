// Package hyperkube translates the configuration of OpenShift's Kubernetes programs into flags of the plain ones, and refuses what it
// doesn't know: a field that nobody reads would be a setting that is lost.
package hyperkube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/test/standin/checks"
)

// Start is how a plain program is started.
type Start struct {
	Args []string
	// Files are written before the start: path to content.
	Files map[string][]byte
	// Needs are files that must be there.
	Needs []string
}

// AdmissionFile is where the configuration of admission plugins goes.
const AdmissionFile = "/tmp/admission.yaml"

// Gates are feature gates that OpenShift's programs know and plain Kubernetes doesn't: those of the payload's FeatureGate, and the one for
// ValidatingAdmissionPolicy, which is always asked for and has been dropped by Kubernetes 1.36.
var Gates = []string{"ExternalOIDC", "MachineConfigNodes", "OpenShiftPodSecurityAdmission", "SigstoreImageVerification", "ValidatingAdmissionPolicy"}

// authorizers and admission plugins that are OpenShift's own.
var (
	authorizers = []string{"Scope", "SystemMasters"}
	groups      = []string{
		"authorization.openshift.io/", "config.openshift.io/", "image.openshift.io/", "network.openshift.io/", "quota.openshift.io/", "route.openshift.io/",
		"scheduling.openshift.io/", "security.openshift.io/", "storage.openshift.io/",
	}
)

type pluginConfig struct {
	Configuration json.RawMessage `json:"configuration,omitempty"`
	Location      string          `json:"location"`
}

type apiServerConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Admission  struct {
		PluginConfig map[string]pluginConfig `json:"pluginConfig"`
	} `json:"admission"`
	Arguments  map[string][]string `json:"apiServerArguments"`
	AuthConfig struct {
		OAuthMetadataFile string `json:"oauthMetadataFile,omitempty"`
	} `json:"authConfig,omitzero"`
	ConsolePublicURL string   `json:"consolePublicURL"`
	CORS             []string `json:"corsAllowedOrigins"`
	ImagePolicy      struct {
		Internal string   `json:"internalRegistryHostname,omitempty"`
		External []string `json:"externalRegistryHostnames,omitempty"`
	} `json:"imagePolicyConfig,omitzero"`
	Project struct {
		DefaultNodeSelector string `json:"defaultNodeSelector,omitempty"`
	} `json:"projectConfig,omitzero"`
	PublicKeys     []string       `json:"serviceAccountPublicKeyFiles"`
	ServicesSubnet string         `json:"servicesSubnet"`
	Serving        checks.Serving `json:"servingInfo"`
}

// APIServer translates a KubeAPIServerConfig. Args are the other arguments of the container.
func APIServer(raw []byte, args []string) (Start, error) {
	c := apiServerConfig{}
	if err := strict(raw, &c, "kubecontrolplane.config.openshift.io/v1", "KubeAPIServerConfig"); err != nil {
		return Start{}, err
	}
	if c.APIVersion != "kubecontrolplane.config.openshift.io/v1" || c.Kind != "KubeAPIServerConfig" {
		return Start{}, fmt.Errorf("the configuration is a %s %s, not a KubeAPIServerConfig", c.APIVersion, c.Kind)
	}
	if c.ConsolePublicURL == "" || c.ServicesSubnet == "" || len(c.PublicKeys) == 0 {
		return Start{}, fmt.Errorf("consolePublicURL, servicesSubnet and serviceAccountPublicKeyFiles must be set")
	}
	if err := checks.ListenAddress(c.Serving.BindAddress); err != nil {
		return Start{}, fmt.Errorf("servingInfo.bindAddress: %w", err)
	}
	s := Start{Files: map[string][]byte{}, Needs: append([]string{c.Serving.CertFile, c.Serving.KeyFile}, c.PublicKeys...)}
	if c.AuthConfig.OAuthMetadataFile != "" {
		s.Needs = append(s.Needs, c.AuthConfig.OAuthMetadataFile)
	}
	given := plainArguments(c.Arguments)
	colon := strings.LastIndex(c.Serving.BindAddress, ":")
	serving := []string{
		"--bind-address=" + strings.Trim(c.Serving.BindAddress[:colon], "[]"), "--secure-port=" + c.Serving.BindAddress[colon+1:],
		"--service-cluster-ip-range=" + c.ServicesSubnet,
	}
	for name, want := range map[string]string{"tls-cert-file": c.Serving.CertFile, "tls-private-key-file": c.Serving.KeyFile} {
		if got := c.Arguments[name]; !slices.Equal(got, []string{want}) {
			return Start{}, fmt.Errorf("apiServerArguments.%s is %q and servingInfo says %q; make them the same", name, got, want)
		}
	}
	if c.Serving.MinTLSVersion != "" {
		serving = append(serving, "--tls-min-version="+c.Serving.MinTLSVersion)
	}
	if len(c.Serving.CipherSuites) > 0 {
		serving = append(serving, "--tls-cipher-suites="+strings.Join(c.Serving.CipherSuites, ","))
	}
	for _, n := range c.Serving.NamedCertificates {
		pair := n.CertFile + "," + n.KeyFile
		if len(n.Names) > 0 {
			pair += ":" + strings.Join(n.Names, ",")
		}
		serving = append(serving, "--tls-sni-cert-key="+pair)
		s.Needs = append(s.Needs, n.CertFile, n.KeyFile)
	}
	for _, f := range c.PublicKeys {
		serving = append(serving, "--service-account-key-file="+f)
	}
	serving = append(serving, "--cors-allowed-origins="+strings.Join(c.CORS, ","))
	admission, err := admissionFile(c.Admission.PluginConfig)
	if err != nil {
		return Start{}, err
	}
	s.Files[AdmissionFile] = admission
	s.Args = slices.Concat(given, serving, []string{"--admission-control-config-file=" + AdmissionFile}, args)
	return s, nil
}

// strict decodes a configuration of which every field must be known.
func strict(raw []byte, into any, apiVersion, kind string) error {
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("the configuration isn't a %s %s: %s", apiVersion, kind, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	return nil
}

// plainArguments are the arguments without what plain Kubernetes doesn't have.
func plainArguments(arguments map[string][]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		values := arguments[name]
		switch name {
		case "authorization-mode":
			values = without(values, func(v string) bool { return slices.Contains(authorizers, v) })
		case "enable-admission-plugins", "disable-admission-plugins":
			values = without(values, ownPlugin)
		case "feature-gates":
			values = PlainGates(values)
		}
		if len(values) == 0 {
			continue
		}
		switch name {
		case "enable-admission-plugins", "disable-admission-plugins", "authorization-mode", "etcd-servers", "etcd-servers-overrides", "requestheader-allowed-names", "api-audiences",
			"kubelet-preferred-address-types", "feature-gates", "runtime-config", "requestheader-extra-headers-prefix", "requestheader-group-headers", "requestheader-username-headers":
			out = append(out, "--"+name+"="+strings.Join(values, ","))
		default:
			for _, v := range values {
				out = append(out, "--"+name+"="+v)
			}
		}
	}
	return out
}

func without(list []string, drop func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(list), drop)
}

func ownPlugin(name string) bool {
	return slices.ContainsFunc(groups, func(g string) bool { return strings.HasPrefix(name, g) })
}

// PlainGates are the gates of a list that plain Kubernetes knows.
func PlainGates(list []string) []string {
	return without(list, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(Gates, name)
	})
}

// admissionFile is the configuration of the plugins that plain Kubernetes has; those of OpenShift are only checked.
func admissionFile(plugins map[string]pluginConfig) ([]byte, error) {
	kinds := map[string]string{
		"network.openshift.io/ExternalIPRanger": "ExternalIPRangerAdmissionConfig", "network.openshift.io/RestrictedEndpointsAdmission": "RestrictedEndpointsAdmissionConfig",
		"PodSecurity": "PodSecurityConfiguration",
	}
	var list []map[string]any
	for _, name := range slices.Sorted(maps.Keys(plugins)) {
		var meta struct{ APIVersion, Kind string }
		if err := json.Unmarshal(plugins[name].Configuration, &meta); err != nil {
			return nil, fmt.Errorf("admission.pluginConfig[%s]: %w", name, err)
		}
		if want, ok := kinds[name]; !ok || meta.Kind != want {
			return nil, fmt.Errorf("admission.pluginConfig[%s] is a %s; want one of %v", name, meta.Kind, kinds)
		}
		if ownPlugin(name) {
			continue
		}
		var configuration map[string]any
		if err := json.Unmarshal(plugins[name].Configuration, &configuration); err != nil {
			return nil, fmt.Errorf("admission.pluginConfig[%s]: %w", name, err)
		}
		// The alpha name is that of OpenShift's, which plain Kubernetes serves no more.
		configuration["apiVersion"] = "pod-security.admission.config.k8s.io/v1"
		list = append(list, map[string]any{"name": name, "configuration": configuration})
	}
	return yaml.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": list})
}
