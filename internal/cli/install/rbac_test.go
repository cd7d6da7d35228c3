package install

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestClusterRules(t *testing.T) {
	t.Run("When the operator gets rights in the management cluster none should let it become somebody else", func(t *testing.T) {
		g := NewWithT(t)
		// Kinds of others, without verbs that mean more than they say; the control planes' operators grant all of them.
		custom := func(group string) bool {
			return strings.Contains(group, "hypershift.openshift.io") || strings.HasSuffix(group, "cluster.x-k8s.io") ||
				group == "capi-provider.agent-install.openshift.io" || strings.HasPrefix(group, "monitoring.") || group == "image.openshift.io" || group == "kubevirt.io" || group == "route.openshift.io" ||
				strings.HasSuffix(group, "hive.openshift.io") || group == "openstack.k-orc.cloud"
		}
		for _, rule := range append(clusterRules(capiChoice{}), namespacedRules()...) {
			for _, group := range rule.APIGroups {
				g.Expect(group).NotTo(Equal("*"))
				for _, verb := range rule.Verbs {
					g.Expect(verb).NotTo(BeElementOf("impersonate", "escalate", "bind"), "%v", rule)
					if services := group == "" && slices.Equal(rule.Resources, []string{"services"}); verb == "*" && !services { // a Service is nobody
						g.Expect(custom(group)).To(BeTrue(), "anything may be done with %v of group %q", rule.Resources, group)
					}
				}
			}
		}
	})
}
