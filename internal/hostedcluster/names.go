package hostedcluster

import (
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// OwnerNamespaceLabel and OwnerNameLabel on cluster-scoped objects name the HostedCluster, which can't be their owner by reference.
const (
	OwnerNamespaceLabel = "hypershift.openshift.io/owner.namespace"
	OwnerNameLabel      = "hypershift.openshift.io/owner.name"
)

// copyOfAnnotation is on copies of the user's objects in control-plane namespaces, with the name of the source. Only what bears it is
// deleted when nothing refers to the source any more.
const copyOfAnnotation = "hypershift.openshift.io/copy-of"

// monitoringLabel lets an observability operator find control-plane namespaces.
const monitoringLabel = "hypershift.openshift.io/monitoring"

// Labels of the control-plane-operator's image that switch behaviour here.
const (
	labelCustomKubeconfig = "io.openshift.hypershift.control-plane-operator-supports-kas-custom-kubeconfig"
)

// payloadTag is that of the control-plane-operator's image in OpenShift payloads.
const payloadTag = "hypershift"

// Keys of copies in the control-plane namespace, and of their sources.
const (
	auditWebhookKey    = "webhook-kubeconfig"
	kubeconfigKey      = "kubeconfig"
	passwordKey        = "password"
	signingPrivateKey  = "service-account.key"
	signingPublicKey   = "service-account.pub"
	sourceSigningKey   = "key"
	sourceOldPublicKey = "old-key.pub"
)

// referencedBy is the annotation on a source object that hcName refers to. An annotation's name may have 63 characters, and the name of a
// HostedCluster that gets a namespace has fewer.
func referencedBy(hcName string) string { return hyperv1.ReferencedResourceAnnotationPrefix + hcName }

func adminKubeconfigName(hcName string) string   { return hcName + "-admin-kubeconfig" }
func customKubeconfigName(hcName string) string  { return hcName + "-custom-admin-kubeconfig" }
func kubeadminPasswordName(hcName string) string { return hcName + "-kubeadmin-password" }

const (
	maxInfraID       = 27 // cloud names are made of it
	maxInfraIDName   = maxInfraID - 1 - infraIDSuffix
	infraIDSuffix    = 5
	infraIDAlphabet  = "abcdefghijklmnopqrstuvwxyz0123456789"
	maxNamespaceName = 63
)

// infraIDFor makes "{name, at most 21 characters of [A-Za-z0-9-]}-{suffix}".
func infraIDFor(name, suffix string) string {
	var b strings.Builder
	for _, c := range name {
		alphanumeric := (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
		if alphanumeric || (c == '-' && !strings.HasSuffix(b.String(), "-")) {
			b.WriteRune(c)
		}
	}
	base := b.String()
	if len(base) > maxInfraIDName {
		base = base[:maxInfraIDName]
	}
	return strings.TrimRight(base, "-") + "-" + suffix
}
