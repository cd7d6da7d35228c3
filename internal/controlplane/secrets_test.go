package controlplane

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// readsAllSecrets says why a component may read every Secret of its control plane, where the keys of all authorities are.
var readsAllSecrets = map[string]string{
	"control-plane-operator":         "it makes them",
	"control-plane-pki-operator":     "it makes authorities and certificates; names come with the signers",
	"hosted-cluster-config-operator": "it copies pull secrets, identity providers' and others that the HostedCluster names into the hosted cluster",
	"capi-provider":                  "user data of machines has a name for each configuration of a pool",
	"cluster-api":                    "Cluster API's managers cache bootstrap data and kubeconfigs by label",
}

// TestSecretsOfComponents walks the Roles as they are rendered.
func TestSecretsOfComponents(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join("..", "cli", "render", "testdata", "golden", "*", "*", "role_*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		role := &rbacv1.Role{}
		g.Expect(yaml.Unmarshal(raw, role)).To(Succeed(), file)
		for _, rule := range role.Rules {
			reads := slices.ContainsFunc(rule.Verbs, func(v string) bool { return v == "*" || v == "get" || v == "list" || v == "watch" })
			secrets := slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "*")
			if reads && secrets && slices.Contains(rule.APIGroups, "") && len(rule.ResourceNames) == 0 {
				g.Expect(readsAllSecrets[role.Name]).NotTo(BeEmpty(), "%s: Role %s reads every Secret: give it names (resourceNames), or write down here why it must", file, role.Name)
			}
		}
	}
}
