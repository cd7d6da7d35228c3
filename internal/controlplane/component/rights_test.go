package component

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/release"
)

func TestLiveRights(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	events := rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}
	payload, kubernetes := &release.Release{}, &release.Release{Kubernetes: true}
	for name, tc := range map[string]struct {
		role string
		ctx  WorkloadContext
		from rbacv1.PolicyRule
		want []rbacv1.PolicyRule
	}{
		"When a Role of a payload grants everything it should name the verbs": {
			"any", WorkloadContext{Release: payload}, rule("", "serviceaccounts", "*"), []rbacv1.PolicyRule{rule("", "serviceaccounts", everyVerb...)},
		},
		"When the kind is an optional one it should stay as published": {
			"any", WorkloadContext{Release: payload}, rule("cluster.x-k8s.io", "*", "*"), []rbacv1.PolicyRule{rule("cluster.x-k8s.io", "*", "*")},
		},
		"When a kind belongs to no namespace it should be left out": {
			"any", WorkloadContext{Release: payload}, rule("", "nodes", "list"), nil,
		},
		"When the program is ours it should be granted events": {
			names.ControlPlaneOperator, WorkloadContext{Release: payload}, rule("", "pods", "get"), []rbacv1.PolicyRule{rule("", "pods", "get"), events},
		},
		"When it is a preview it should stay as published": {
			names.ControlPlaneOperator, WorkloadContext{Release: payload, PublishedRights: true}, rule("", "pods", "*"), []rbacv1.PolicyRule{rule("", "pods", "*")},
		},
		"When the release is Kubernetes' it should stay as it is": {
			names.ControlPlaneOperator, WorkloadContext{Release: kubernetes}, rule("", "pods", "*"), []rbacv1.PolicyRule{rule("", "pods", "*")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: tc.role}, Rules: []rbacv1.PolicyRule{tc.from}}
			liveRights(tc.ctx, role)
			NewWithT(t).Expect(role.Rules).To(Equal(tc.want))
		})
	}
}

// TestRightsOfPayloads looks at the Roles of all components of payloads as they are applied.
func TestRightsOfPayloads(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../openshift/*/assets/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	nested, err := filepath.Glob("../openshift/*/assets/*/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	roles := 0
	for _, file := range append(files, nested...) {
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		role := &rbacv1.Role{}
		if !bytes.Contains(raw, []byte("\nkind: Role\n")) {
			continue
		}
		roles++
		g.Expect(yaml.UnmarshalStrict(raw, role)).To(Succeed(), file)
		liveRights(WorkloadContext{Release: &release.Release{}}, role)
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				g.Expect(verb).NotTo(BeElementOf("impersonate", "escalate", "bind"), "%s: When a component of a payload has a Role it should not become somebody else by it", file)
				for _, group := range rule.APIGroups {
					g.Expect(verb == "*" && !custom(group)).To(BeFalse(), "%s: anything may be done with %v of group %q", file, rule.Resources, group)
				}
			}
		}
	}
	g.Expect(roles).To(BeNumerically(">", 15))
}
