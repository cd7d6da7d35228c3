package checks

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Serving is how a program listens.
type Serving struct {
	BindAddress       string      `json:"bindAddress,omitempty"`
	BindNetwork       string      `json:"bindNetwork,omitempty"`
	CertFile          string      `json:"certFile,omitempty"`
	KeyFile           string      `json:"keyFile,omitempty"`
	ClientCA          string      `json:"clientCA,omitempty"`
	MinTLSVersion     string      `json:"minTLSVersion,omitempty"`
	CipherSuites      []string    `json:"cipherSuites,omitempty"`
	NamedCertificates []NamedPair `json:"namedCertificates,omitempty"`

	MaxRequestsInFlight   int `json:"maxRequestsInFlight,omitempty"`
	RequestTimeoutSeconds int `json:"requestTimeoutSeconds,omitempty"`
}

// NamedPair is a certificate for some host names; none: those in it.
type NamedPair struct {
	Names    []string `json:"names,omitempty"`
	CertFile string   `json:"certFile,omitempty"`
	KeyFile  string   `json:"keyFile,omitempty"`
}

// Etcd is how a program reaches etcd.
type Etcd struct {
	URLs     []string `json:"urls,omitempty"`
	CA       string   `json:"ca,omitempty"`
	CertFile string   `json:"certFile,omitempty"`
	KeyFile  string   `json:"keyFile,omitempty"`
}

// Config is what a configuration refers to.
type Config struct {
	Serving     Serving
	Etcd        Etcd
	Files       []string // that must be there
	Authorities []string // files of certificates
	Outputs     []string // files that are written
	Kubeconfigs []string
}

type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type kubeClient struct {
	KubeConfig          string `json:"kubeConfig,omitempty"`
	ConnectionOverrides struct {
		AcceptContentTypes string `json:"acceptContentTypes,omitempty"`
		ContentType        string `json:"contentType,omitempty"`
		QPS                int    `json:"qps,omitempty"`
		Burst              int    `json:"burst,omitempty"`
	} `json:"connectionOverrides,omitzero"`
}

type imagePolicy struct {
	InternalRegistryHostname   string   `json:"internalRegistryHostname,omitempty"`
	ExternalRegistryHostnames  []string `json:"externalRegistryHostnames,omitempty"`
	AllowedRegistriesForImport []struct {
		DomainName string `json:"domainName"`
		Insecure   bool   `json:"insecure,omitempty"`
	} `json:"allowedRegistriesForImport,omitempty"`
}

// decode reads YAML or JSON strictly and checks its kind.
func decode(raw []byte, apiVersion, kind string, into any, meta *typeMeta) error {
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("the configuration isn't a %s: %s", kind, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	if meta.APIVersion != apiVersion || meta.Kind != kind {
		return fmt.Errorf("the configuration is a %s %s; give a %s %s", meta.APIVersion, meta.Kind, apiVersion, kind)
	}
	return nil
}

func (s Serving) check(certificates bool) error {
	if s.BindAddress != "" {
		if err := ListenAddress(s.BindAddress); err != nil {
			return fmt.Errorf("servingInfo.bindAddress: %w", err)
		}
	}
	switch s.BindNetwork {
	case "", "tcp", "tcp4", "tcp6":
	default:
		return fmt.Errorf("servingInfo.bindNetwork %q is none of tcp, tcp4, tcp6", s.BindNetwork)
	}
	if s.MinTLSVersion != "" {
		if _, err := MinVersion(s.MinTLSVersion); err != nil {
			return fmt.Errorf("servingInfo.minTLSVersion: %w", err)
		}
	}
	if _, err := CipherSuites(s.CipherSuites); err != nil {
		return fmt.Errorf("servingInfo.cipherSuites: %w", err)
	}
	if certificates && (s.CertFile == "" || s.KeyFile == "") {
		return fmt.Errorf("servingInfo.certFile and keyFile must name the certificate to serve with")
	}
	return nil
}

// OpenShiftAPIServer reads the configuration of openshift-apiserver.
func OpenShiftAPIServer(raw []byte) (Config, error) {
	var c struct {
		typeMeta           `json:",inline"`
		APIServerArguments map[string][]string `json:"apiServerArguments,omitempty"`
		ImagePolicy        imagePolicy         `json:"imagePolicyConfig,omitzero"`
		KubeClient         kubeClient          `json:"kubeClientConfig,omitzero"`
		Serving            Serving             `json:"servingInfo"`
		Storage            Etcd                `json:"storageConfig"`
		Routing            struct {
			Subdomain string `json:"subdomain,omitempty"`
		} `json:"routingConfig,omitzero"`
		Project struct {
			Message  string `json:"projectRequestMessage,omitempty"`
			Template string `json:"projectRequestTemplate,omitempty"`
			Selector string `json:"defaultNodeSelector,omitempty"`
		} `json:"projectConfig,omitzero"`
	}
	if err := decode(raw, "openshiftcontrolplane.config.openshift.io/v1", "OpenShiftAPIServerConfig", &c, &c.typeMeta); err != nil {
		return Config{}, err
	}
	if err := c.Serving.check(true); err != nil {
		return Config{}, err
	}
	if c.Routing.Subdomain == "" {
		return Config{}, fmt.Errorf("routingConfig.subdomain must be the domain of routes")
	}
	args, _, err := Arguments(flagWords(c.APIServerArguments), apiServerArguments)
	if err != nil {
		return Config{}, fmt.Errorf("apiServerArguments: %w", err)
	}
	return finish(Config{
		Serving: c.Serving, Etcd: c.Storage, Kubeconfigs: []string{c.KubeClient.KubeConfig},
		Files: append(args["audit-policy-file"], args["audit-webhook-config-file"]...), Outputs: args["audit-log-path"],
	})
}

var apiServerArguments = ParseFlags(`audit-log-format=text audit-log-maxbackup=number audit-log-maxsize=number audit-log-path=output! audit-policy-file=file!
	audit-webhook-config-file=file audit-webhook-mode=text audit-webhook-initial-backoff=duration shutdown-delay-duration=duration! feature-gates=text*`)

// flagWords are extended arguments of a configuration as words of a command line, in the order of their names.
func flagWords(args map[string][]string) []string {
	var words []string
	for _, name := range sortedKeys(args) {
		for _, v := range args[name] {
			words = append(words, "--"+name+"="+v)
		}
	}
	return words
}

// OpenShiftControllerManager reads the configuration that openshift-controller-manager, route-controller-manager and
// cluster-policy-controller share.
func OpenShiftControllerManager(raw []byte) (Config, error) {
	var c struct {
		typeMeta    `json:",inline"`
		Controllers []string   `json:"controllers,omitempty"`
		KubeClient  kubeClient `json:"kubeClientConfig,omitzero"`
		Serving     Serving    `json:"servingInfo"`
		Leader      struct {
			Name string `json:"name,omitempty"`
		} `json:"leaderElection,omitzero"`
		Build struct {
			ImageTemplateFormat imageTemplate   `json:"imageTemplateFormat,omitzero"`
			BuildDefaults       json.RawMessage `json:"buildDefaults,omitempty"`
			BuildOverrides      json.RawMessage `json:"buildOverrides,omitempty"`
		} `json:"build,omitzero"`
		Deployer struct {
			ImageTemplateFormat imageTemplate `json:"imageTemplateFormat,omitzero"`
		} `json:"deployer,omitzero"`
		DockerPullSecret struct {
			InternalRegistryHostname string   `json:"internalRegistryHostname,omitempty"`
			RegistryURLs             []string `json:"registryURLs,omitempty"`
		} `json:"dockerPullSecret,omitzero"`
		Ingress struct {
			IngressIPNetworkCIDR string `json:"ingressIPNetworkCIDR,omitempty"`
		} `json:"ingress,omitzero"`
		FeatureGates []string `json:"featureGates,omitempty"`
	}
	if err := decode(raw, "openshiftcontrolplane.config.openshift.io/v1", "OpenShiftControllerManagerConfig", &c, &c.typeMeta); err != nil {
		return Config{}, err
	}
	if err := c.Serving.check(true); err != nil {
		return Config{}, err
	}
	if err := gates(c.FeatureGates); err != nil {
		return Config{}, fmt.Errorf("featureGates: %w", err)
	}
	return finish(Config{Serving: c.Serving})
}

type imageTemplate struct {
	Format string `json:"format,omitempty"`
	Latest bool   `json:"latest,omitempty"`
}

func gates(list []string) error {
	for _, g := range list {
		name, value, _ := strings.Cut(g, "=")
		if name == "" || (value != "true" && value != "false") {
			return fmt.Errorf("%q is not NAME=true or NAME=false", g)
		}
	}
	return nil
}

// GenericController reads the configuration of the operators that have nothing but an address to serve at.
func GenericController(raw []byte) (Config, error) {
	var c struct {
		typeMeta `json:",inline"`
		Serving  Serving `json:"servingInfo"`
	}
	if err := decode(raw, "config.openshift.io/v1", "GenericControllerConfig", &c, &c.typeMeta); err != nil {
		return Config{}, err
	}
	if c.Serving.BindAddress == "" {
		return Config{}, fmt.Errorf("servingInfo.bindAddress must be an address to serve at")
	}
	if err := c.Serving.check(false); err != nil {
		return Config{}, err
	}
	return finish(Config{Serving: c.Serving})
}

// MachineApprover reads the configuration of the machine-approver.
func MachineApprover(raw []byte) (Config, error) {
	var c struct {
		NodeClientCert struct {
			Disabled *bool `json:"disabled"`
		} `json:"nodeClientCert"`
	}
	if err := yaml.UnmarshalStrict(raw, &c); err != nil {
		return Config{}, fmt.Errorf("the configuration isn't a ClusterMachineApproverConfig: %w", err)
	}
	return Config{}, nil
}

// finish adds what the parts refer to and leaves out what isn't set.
func finish(c Config) (Config, error) {
	c.Kubeconfigs = notEmpty(c.Kubeconfigs)
	c.Authorities = notEmpty(append(c.Authorities, c.Serving.ClientCA, c.Etcd.CA))
	if len(c.Etcd.URLs) > 0 && (c.Etcd.CA == "" || c.Etcd.CertFile == "" || c.Etcd.KeyFile == "") {
		return c, fmt.Errorf("storageConfig: ca, certFile and keyFile must all be set")
	}
	return c, nil
}

func notEmpty(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
