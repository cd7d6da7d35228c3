package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"hcp.internal/platform/internal/controlplane/cpo"
)

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
			_, missing := validation.Covers(own, rules)
			g.Expect(missing).To(BeEmpty(), component)
		}
	})
}

// wildcards are the groups on whose kinds every verb may be granted, with the reason.
var wildcards = map[string]string{
	"hypershift.openshift.io":                  "our own",
	"certificates.hypershift.openshift.io":     "our own",
	"addons.cluster.x-k8s.io":                  "Cluster API's, which providers extend",
	"bootstrap.cluster.x-k8s.io":               "as above",
	"capi-provider.agent-install.openshift.io": "as above",
	"cluster.x-k8s.io":                         "as above",
	"controlplane.cluster.x-k8s.io":            "as above",
	"infrastructure.cluster.x-k8s.io":          "as above",
	"ipam.cluster.x-k8s.io":                    "as above",
	"image.openshift.io":                       "optional kinds of the management cluster without verbs of their own",
	"monitoring.coreos.com":                    "as above",
	"monitoring.rhobs":                         "as above",
	"route.openshift.io":                       "as above",
}

func TestNoRightsBeyondVerbs(t *testing.T) {
	t.Run("When a component has a Role it should hold no verb by which it could become somebody else", func(t *testing.T) {
		g := NewWithT(t)
		ctx := workloadContext(t, hostedControlPlane(), mounted()...)
		seen := 0
		for _, c := range allWorkloads() {
			for _, obj := range render(t, ctx, c) {
				var rules []rbacv1.PolicyRule
				switch role := obj.(type) {
				case *rbacv1.Role:
					rules = role.Rules
				case *rbacv1.ClusterRole:
					rules = role.Rules
				}
				for _, rule := range rules {
					seen++
					for _, group := range rule.APIGroups {
						g.Expect(group).NotTo(Equal("*"), c.Name())
						for _, verb := range rule.Verbs {
							g.Expect(verb).NotTo(BeElementOf("impersonate", "escalate", "bind"), "%s: %s on %v", c.Name(), verb, rule.Resources)
							if verb == "*" {
								g.Expect(wildcards).To(HaveKey(group), "%s may do anything with %v of group %q", c.Name(), rule.Resources, group)
							}
						}
					}
				}
			}
		}
		g.Expect(seen).To(BeNumerically(">", 20))
	})
}
