package create

import (
	"regexp"
	"strings"
)

// Labels of Secrets that the CLI makes for a cluster. Together they let the operator give them to the HostedCluster, so that
// they go with it; destroy looks for them, too.
const (
	SafeToDeleteLabel   = "hypershift.openshift.io/safe-to-delete-with-cluster"
	AutoCreatedForLabel = "hypershift.openshift.io/auto-created-for-infra"
)

func pullSecretName(cluster string) string    { return cluster + "-pull-secret" }
func sshKeyName(cluster string) string        { return cluster + "-ssh-key" }
func encryptionKeyName(cluster string) string { return cluster + "-etcd-encryption-key" }
func signingKeyName(cluster string) string    { return cluster + "-sa-token-issuer-key" }
func trustBundleName(cluster string) string   { return cluster + "-user-ca-bundle" }

const (
	infraIDNameLength   = 21 // leaves room for a dash and the suffix in 27 characters, the least that clouds allow
	infraIDSuffixLength = 5
)

var (
	notInInfraID = regexp.MustCompile(`[^A-Za-z0-9-]`)
	dashes       = regexp.MustCompile(`-+`)
)

// infraID joins a cluster's name, cut to 21 characters, and a suffix of 5 random ones.
func infraID(cluster, suffix string) string {
	name := dashes.ReplaceAllString(notInInfraID.ReplaceAllString(cluster, ""), "-")
	if len(name) > infraIDNameLength {
		name = name[:infraIDNameLength]
	}
	return strings.TrimRight(name, "-") + "-" + suffix
}
