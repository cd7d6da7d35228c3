package token

import (
	"encoding/json"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// ConfigurationHash identifies spec.configuration, of which the HostedCluster and the HostedControlPlane have the same. A field that is not set leaves
// no trace, so that fields added later change nothing. No configuration has no hash.
func ConfigurationHash(c *hyperv1.ClusterConfiguration) string {
	if c == nil {
		return ""
	}
	return ContentHash(mustJSON(c))
}

// CloudConfigHash identifies the data of the ConfigMap with the configuration of the cloud. No data has no hash.
func CloudConfigHash(data map[string]string) string {
	if len(data) == 0 {
		return ""
	}
	raw, err := json.Marshal(data) // keys come out sorted
	if err != nil {
		panic(err) // strings
	}
	return ContentHash(raw)
}

// CloudConfigName is the ConfigMap of the control plane namespace that configures the cloud of a platform; empty: machines need none.
func CloudConfigName(t hyperv1.PlatformType) string {
	switch t {
	case hyperv1.AzurePlatform:
		return "azure-cloud-config"
	case hyperv1.OpenStackPlatform:
		return "openstack-cloud-config"
	default:
		return ""
	}
}

// MachineConfigServer is the ConfigMap, written by the control-plane-operator, with files that describe a hosted cluster of an OpenShift release to the
// release's machine-config tools. ConfigurationHashKey is which configuration they are of, and TrustBundleFile is there when machines trust more
// authorities than the system's.
const (
	MachineConfigServer  = "machine-config-server"
	ConfigurationHashKey = "configuration-hash"
	TrustBundleFile      = "user-ca-bundle-config.yaml"
)
