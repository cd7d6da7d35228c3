package component

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
