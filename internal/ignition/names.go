package ignition

import (
	"time"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/pki"
)

// tokenTTL is how long a token is good, and tokenRotation after what time it is replaced. The old one stays good for the rest of its
// life, so a machine has at least tokenTTL-tokenRotation to boot.
const (
	tokenTTL      = 11 * time.Hour
	tokenRotation = tokenTTL / 2
)

// keyLast of a token Secret is the last good payload, as in token.PayloadKey, of pools that are not upgraded in place. It is the ignition
// server's alone.
const keyLast = "last-payload"

// Reasons that a token Secret reports besides those of a NodePool's conditions.
const (
	reasonAsExpected = "AsExpected"
	// reasonCloudConfigPending: the token is of another state of the cluster than what is there; that ends by itself.
	reasonCloudConfigPending = "CloudConfigPending"
)

// Objects of the control plane namespace that payloads are made of.
const (
	bootstrapKubeconfigSecret = pki.NodeBootstrapKubeconfig
	kubeletCAConfigMap        = pki.KubeletCABundle
)

// inputSecrets and inputConfigMaps change payloads when they change.
var (
	inputSecrets    = map[string]bool{bootstrapKubeconfigSecret: true, names.PullSecret: true}
	inputConfigMaps = map[string]bool{
		kubeletCAConfigMap: true, names.UserCABundle: true, token.MachineConfigServer: true, "azure-cloud-config": true, "openstack-cloud-config": true,
	}
)
