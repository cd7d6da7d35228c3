package install

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
)

// managedARO is the one managed service that an installation can be told of.
const managedARO = "ARO-HCP"

// Managed says what the operators of control planes with OpenShift releases are told of the installation: of the service that it is a part of, and of
// the metrics of the management cluster. The zero value: nothing.
type Managed struct {
	// Service is ARO-HCP or empty.
	Service string
	// KeyVaultClientID is the identity with which Pods read the credentials of managed identities from a key vault of Azure.
	KeyVaultClientID string
	// CVOMetrics lets cluster-version-operators read metrics of the management cluster, from CVOPrometheusURL or else from its own monitoring.
	CVOMetrics       bool
	CVOPrometheusURL string
}

func (m *Managed) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.Service, "managed-service", m.Service, "Managed service that the installation is a part of: ARO-HCP; control planes of OpenShift releases with managed identities of Azure go by it")
	fs.StringVar(&m.KeyVaultClientID, "aro-hcp-key-vault-users-client-id", m.KeyVaultClientID, "Client ID of the identity that reads credentials of managed identities from key vaults; with --managed-service ARO-HCP")
	fs.BoolVar(&m.CVOMetrics, "enable-cvo-management-cluster-metrics-access", m.CVOMetrics, "Let the cluster-version-operators of OpenShift releases read metrics of the management cluster, to judge conditional updates")
	fs.StringVar(&m.CVOPrometheusURL, "cvo-prometheus-url", m.CVOPrometheusURL, "URL of the Prometheus that they ask (default: the monitoring of an OpenShift management cluster); with --enable-cvo-management-cluster-metrics-access")
}

func (m Managed) validate() (errs []error) {
	if m.Service != "" && m.Service != managedARO {
		errs = append(errs, fmt.Errorf("--managed-service %q: must be %s, or leave it out", m.Service, managedARO))
	}
	switch {
	case m.KeyVaultClientID == "":
	case m.Service == "":
		errs = append(errs, fmt.Errorf("--aro-hcp-key-vault-users-client-id: give --managed-service %s, too", managedARO))
	case !uuid.MatchString(m.KeyVaultClientID):
		errs = append(errs, fmt.Errorf("--aro-hcp-key-vault-users-client-id %q: must be a UUID", m.KeyVaultClientID))
	}
	switch u, err := url.Parse(m.CVOPrometheusURL); {
	case m.CVOPrometheusURL == "":
	case !m.CVOMetrics:
		errs = append(errs, errors.New("--cvo-prometheus-url: give --enable-cvo-management-cluster-metrics-access, too"))
	case err != nil || u.Host == "" || u.User != nil || !strings.HasPrefix(u.Scheme, "http"):
		errs = append(errs, errors.New("--cvo-prometheus-url: must be a URL that begins with https:// or http://, without a user"))
	}
	return errs
}

// env are the operator's variables, which it hands on.
func (m Managed) env() (list []corev1.EnvVar) {
	access := ""
	if m.CVOMetrics {
		access = "1"
	}
	for _, e := range []corev1.EnvVar{
		{Name: "MANAGED_SERVICE", Value: m.Service}, {Name: "ARO_HCP_KEY_VAULT_USER_CLIENT_ID", Value: m.KeyVaultClientID},
		{Name: "ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS", Value: access}, {Name: "CVO_PROMETHEUS_URL", Value: m.CVOPrometheusURL},
	} {
		if e.Value != "" {
			list = append(list, e)
		}
	}
	return list
}
