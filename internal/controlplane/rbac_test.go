package controlplane

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"hcp.internal/platform/internal/controlplane/cpo"
)

// covers says whether rules grant one verb on one resource.
func covers(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	has := func(list []string, item string) bool {
		return slices.Contains(list, item) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return has(r.APIGroups, group) && has(r.Resources, resource) && has(r.Verbs, verb)
	})
}

func TestOperatorMayGrant(t *testing.T) {
	t.Run("When a component has a Role the control-plane-operator should hold all of it", func(t *testing.T) {
		g := NewWithT(t)
		ctx := workloadContext(t, hostedControlPlane(), mounted()...)
		var own []rbacv1.PolicyRule
		roles := map[string][]rbacv1.PolicyRule{}
		for _, c := range allWorkloads() {
			for _, obj := range render(t, ctx, c) {
				if role, ok := obj.(*rbacv1.Role); ok {
					roles[c.Name()] = role.Rules
				}
			}
		}
		own = roles[cpo.Name]
		g.Expect(own).NotTo(BeEmpty())
		for component, rules := range roles {
			for _, rule := range rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							g.Expect(covers(own, group, resource, verb)).To(BeTrue(), "%s grants %s on %s.%s", component, verb, resource, group)
						}
					}
				}
			}
		}
	})
}
