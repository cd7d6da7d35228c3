package nodepool

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// Finalizer keeps a NodePool until its machines are gone.
const Finalizer = hyperv1.NodePoolFinalizer

// Names of what the control plane has for us.
const (
	ignitionCASecret = "ignition-server-ca-cert"
	ignitionCAKey    = "tls.crt"

	configKey = "config"
)

// contentAnnotation on a token Secret is the hash of the configuration in it, also of what is not the user's.
const contentAnnotation = "hypershift.openshift.io/config-content-hash"

// keyOf is what objects of a pool have in annotation hypershift.openshift.io/nodePool. It is of the form of names.BackReference.
func keyOf(pool client.Object) string { return names.BackReference(pool) }

// splitComma gives the parts of a list that are not empty.
func splitComma(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" && !yield(part) {
				return
			}
		}
	}
}

// coreConfigName tells the ConfigMaps by which the control plane configures machines by their names, which all start alike: events carry no
// labels.
func coreConfigName(name string) bool { return strings.HasPrefix(name, "ignition-config-") }
