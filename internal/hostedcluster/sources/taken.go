package sources

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/pki"
)

// takenNames are names that a copy must not have, of either kind: it would replace keys, certificates or settings of the control plane itself. A kubeconfig
// may name a program, which whoever reads the kubeconfig runs with its own rights. Those of package pki are not repeated here.
var takenNames = sets.New(names.PullSecret, names.SSHKey, names.ServiceAccountKey, names.UserCABundle, "kubeadmin-password", "auth-config", "kas-config",
	"kas-secret-encryption-config-file")

// takenSecrets are Secrets of components, and of operators that put them beside a control plane.
var takenSecrets = sets.New(
	"aws-node-termination-handler-creds", "aws-pod-identity-webhook-kubeconfig", "azure-cloud-config", "azure-disk-csi-config", "azure-file-csi-config",
	"azure-workload-identity-webhook-kubeconfig", "capi-webhooks-tls", "cloud-controller-creds", "cloud-controller-manager-creds",
	"cloud-credential-operator-service-account-kubeconfig", "control-plane-operator-creds", "customer-system-admin-client-cert-key", "customer-system-admin-signer",
	"dns-operator-service-account-kubeconfig", "ingress-operator-service-account-kubeconfig", "karpenter-credentials", "kas-authentication-token-webhook-config",
	"kas-secret-encryption-config", "kubevirt-csi-controller-service-account-kubeconfig", "node-management-creds", "oauth-openshift-default-error-template",
	"oauth-openshift-default-login-template", "oauth-openshift-default-provider-selection-template", "oauth-openshift-session", "pprof-cert",
	"sre-system-admin-client-cert-key", "sre-system-admin-signer",
)

// takenConfigMaps are ConfigMaps of components, and of operators that put them beside a control plane.
var takenConfigMaps = sets.New(
	"aws-cloud-config", "azure-cloud-config", "ccm-config", "cluster-policy-controller-config", "cluster-storage-operator-config",
	"control-plane-pki-operator-config", "csi-snapshot-controller-operator-config", "customer-system-admin-signer-ca", "driver-config", "etcd-config",
	"etcd-founded", "gcp-cloud-config", "ignition-config-fips", "ignition-config-worker-ssh", "image-registry-controller-config", "kas-audit-config",
	"kas-egress-selector-config", "kcm-config", "kube-scheduler", "kubevirt-cloud-config", "machine-approver-config", "metrics-proxy-config", "oauth-metadata",
	"oauth-openshift", "oauth-openshift-audit", "olm-collect-profiles", "openshift-apiserver", "openshift-apiserver-audit",
	"openshift-config-managed-trusted-ca-bundle", "openshift-controller-manager-config", "openshift-oauth-apiserver-audit",
	"openshift-route-controller-manager-config", "openstack-cloud-config", "recycler-config", "router", "secret-reencryption-progress",
	"sre-system-admin-signer-ca",
)

// Taken tells that the copy would have the name of an object of the control plane itself, one of its etcd's shards among them.
func (r Reference) Taken(spec *hyperv1.HostedClusterSpec) bool {
	if !r.mirrorMeta && !r.ownName {
		return false // then the name is ours
	}
	// The certificate for a user's own etcd is called as ours would be, of which there is none then.
	if r.Purpose == UnmanagedEtcd && r.target == pki.EtcdClient {
		return false
	}
	own := shards.Names(spec.Etcd)
	secrets, configMaps := pki.NamesOf(spec.InfraID, own)
	if takenNames.Has(r.target) || slices.Contains(secrets, r.target) || slices.Contains(configMaps, r.target) {
		return true
	}
	if r.Kind == Secret {
		return takenSecrets.Has(r.target)
	}
	return takenConfigMaps.Has(r.target) || slices.ContainsFunc(own, func(shard string) bool {
		return r.target == "etcd-"+shard+"-config" || r.target == "etcd-"+shard+"-founded"
	})
}
