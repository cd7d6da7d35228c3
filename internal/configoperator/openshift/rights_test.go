package openshift

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"hcp.internal/platform/internal/controlplane/openshift/configoperator"
)

// verbs are what an Action asks of an API server, as Executor does it.
var verbs = map[Do][]string{
	Apply: {"get", "patch", "create"}, Create: {"get", "patch", "create"}, Edit: {"get", "update", "create"}, EditPresent: {"get", "update"},
	Delete: {"get", "delete"}, DeleteOwn: {"get", "delete"},
}

// resources of the kinds that are written into the control plane namespace. One more is a line here, and has to be in the Role.
var plurals = map[string]string{"ConfigMap": "configmaps", "Secret": "secrets", "Service": "services"}

// The Role is another package's; what it is for is here.
func TestRights(t *testing.T) {
	for _, name := range scenarios {
		t.Run("When a control plane is "+name+" every step should have the right to what it writes beside the control plane", func(t *testing.T) {
			g := NewWithT(t)
			in := scenario(t, name)
			rules, err := configoperator.Rights(in.HCP)
			g.Expect(err).NotTo(HaveOccurred())
			granted := func(verb, resource, name string) bool {
				return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.APIGroups, "") && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb) &&
						(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
				})
			}
			// What is there of the hosted cluster makes more of the steps act.
			in.Hosted.Objects["Config /cluster"] = map[string]any{"spec": map[string]any{"managementState": "Removed"}}
			for _, key := range slices.Sorted(maps.Keys(wanted(in.HCP))) {
				if in.Hosted.Objects[key] == nil && key != additionalKey { // that one isn't any content
					in.Hosted.Objects[key] = map[string]any{"data": map[string]any{"service-ca.crt": "authority", "ca-bundle.crt": "authority"}, "spec": map[string]any{}}
				}
			}
			actions, err := Plan(in)
			g.Expect(err).NotTo(HaveOccurred())
			seen := 0
			for _, a := range actions {
				if !a.Management {
					continue
				}
				seen++
				kind := a.Object.GetObjectKind().GroupVersionKind()
				g.Expect(kind.Group).To(BeEmpty(), a.Name())
				g.Expect(plurals).To(HaveKey(kind.Kind), a.Name())
				for _, verb := range verbs[a.Do] {
					g.Expect(granted(verb, plurals[kind.Kind], a.Object.GetName())).To(BeTrue(), "%s: %s, and the Role doesn't grant %s", a.Name(), a.Do, verb)
				}
			}
			g.Expect(seen).To(BeNumerically(">", 1), "steps write something there")
			for _, resource := range []string{"configmaps", "secrets", "services"} { // what is read before
				g.Expect(granted("get", resource, "")).To(BeTrue(), resource)
			}
			g.Expect(granted("list", "configmaps", "")).To(BeTrue(), "settings of kubelets")
			for _, verb := range []string{"create", "update", "patch", "delete"} {
				for _, resource := range []string{"secrets", "pods", "deployments"} {
					g.Expect(granted(verb, resource, "root-ca")).To(BeFalse(), "it parses what hosted clusters say, and may %s %s", verb, resource)
				}
			}
		})
	}
	t.Run("When a cluster has run its release once leftovers should be removed once", func(t *testing.T) {
		g := NewWithT(t)
		in := scenario(t, "plain")
		in.Hosted.Objects[versionKey] = map[string]any{"status": map[string]any{"desired": map[string]any{"version": in.Release.Version}}}
		actions, err := leftovers(in)
		g.Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, a := range actions {
			g.Expect(a.Do).To(Equal(Delete))
			names = append(names, a.Name())
		}
		g.Expect(names).To(ContainElements("Deployment openshift-dns-operator/dns-operator", "PodDisruptionBudget openshift-operator-lifecycle-manager/packageserver-pdb",
			"CustomResourceDefinition machineconfigs.machineconfiguration.openshift.io", "Deployment openshift-kube-storage-version-migrator/migrator"))
		in.Cleared = true
		g.Expect(Clears(in)).To(BeFalse())
	})
}
