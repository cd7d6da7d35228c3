package component

import (
	"strings"

	"hcp.internal/platform/internal/contract/scraping"
)

// Environment is what components take over from the process of the operator.
type Environment struct {
	// Proxy is the proxy by which the operator itself reaches the outside.
	Proxy Proxy
	// ManagedService is the service that the installation is a part of: ARO-HCP, ROSA-HCP, or empty.
	ManagedService string
	// KeyVaultClientID is the identity that reads the key vault of managed identities, on Azure.
	KeyVaultClientID string
	// SizeTagging says that the sizes of hosted clusters are tagged.
	SizeTagging bool
	// RHOBSMonitoring has components be scraped by Red Hat's observability stack.
	RHOBSMonitoring bool
	// CVOMetricsAccess lets the cluster-version-operator read the metrics of the management cluster.
	CVOMetricsAccess bool
	// CVOPrometheusURL is where it reads them; empty: at the management cluster's own monitoring.
	CVOPrometheusURL string
	// DefaultIngressDomain is the DNS domain of the management cluster's router; empty: not known.
	DefaultIngressDomain string
	// AWSEndpoint is the URL of all services of AWS; empty: AWS's own.
	AWSEndpoint string
	// ImageMirrors are the mirrors of the management cluster as the operator got them.
	ImageMirrors string
	// PrometheusNamespace is where the Prometheus runs that asks for metrics; empty: where an OpenShift management cluster has it.
	PrometheusNamespace string
	// GatewayNamespace is that of the Gateway that leads to all hosted clusters; empty: there is none.
	GatewayNamespace string
	// MonitorLabels are labels of ServiceMonitors and PodMonitors, as scraping.FormatLabels writes them.
	MonitorLabels string
}

// AROHCP is the ManagedService of Azure Red Hat OpenShift.
const AROHCP = "ARO-HCP"

// EnvAWSEndpoint is the variable by which SDKs of AWS, and so all who call it, learn of another endpoint.
const EnvAWSEndpoint = "AWS_ENDPOINT_URL"

// Proxy is an HTTP proxy as programs take it from their environment: URLs, and the hosts, domains and networks that are reached without, separated by
// commas.
type Proxy struct{ HTTP, HTTPS, No string }

// EnvironmentFrom reads an Environment from variables.
func EnvironmentFrom(getenv func(string) string) Environment {
	gateway, _, _ := strings.Cut(getenv("SHARED_GATEWAY"), "/")
	return Environment{
		Proxy:          Proxy{HTTP: getenv("HTTP_PROXY"), HTTPS: getenv("HTTPS_PROXY"), No: getenv("NO_PROXY")},
		ManagedService: getenv("MANAGED_SERVICE"), KeyVaultClientID: getenv("ARO_HCP_KEY_VAULT_USER_CLIENT_ID"),
		SizeTagging: getenv("ENABLE_SIZE_TAGGING") == "1", RHOBSMonitoring: getenv("RHOBS_MONITORING") == "1",
		CVOMetricsAccess: getenv("ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS") == "1", ImageMirrors: getenv("OPENSHIFT_IMG_OVERRIDES"),
		DefaultIngressDomain: getenv("DEFAULT_INGRESS_DOMAIN"), CVOPrometheusURL: getenv("CVO_PROMETHEUS_URL"),
		AWSEndpoint:         getenv(EnvAWSEndpoint),
		PrometheusNamespace: getenv(scraping.EnvNamespace), GatewayNamespace: gateway, MonitorLabels: getenv(scraping.EnvLabels),
	}
}
