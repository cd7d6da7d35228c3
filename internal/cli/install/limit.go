package install

import (
	"fmt"
	"slices"
	"strings"
)

// limitable are the platforms that --limit-crd-install knows. The operator refuses clusters of those that are left out; None is never left out.
var limitable = []string{"AWS", "Azure", "IBMCloud", "KubeVirt", "Agent", "PowerVS", "OpenStack", "GCP", "None", localPlatform}

// localPlatform is the platform that an installation has only when it is named.
const localPlatform = "Local"

// EveryPlatform gives all platforms. Without a list the operator takes all but Local, whose machines are privileged containers of the management cluster.
func EveryPlatform() []string { return slices.Clone(limitable) }

// platformOfCRD is the only platform that needs a definition. Those of platform Local are always installed: the operator
// watches them.
var platformOfCRD = map[string]string{
	"awsendpointservices.hypershift.openshift.io":       "AWS",
	"azureprivatelinkservices.hypershift.openshift.io":  "Azure",
	"gcpprivateserviceconnects.hypershift.openshift.io": "GCP",
}

// wanted says whether a definition is installed.
func (o Options) wanted(crd string) bool {
	platform := platformOfCRD[crd]
	return platform == "" || len(o.Platforms) == 0 || slices.Contains(o.Platforms, platform)
}

func validatePlatforms(platforms []string) error {
	for _, platform := range platforms {
		if !slices.Contains(limitable, platform) {
			return fmt.Errorf("--limit-crd-install %q: must be some of %s", platform, strings.Join(limitable, ", "))
		}
	}
	return nil
}
