package pkioperator

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"hcp.internal/platform/internal/controlplane/component"
)

func TestRole(t *testing.T) {
	published := []rbacv1.PolicyRule{{APIGroups: []string{"hypershift.openshift.io"}, Resources: []string{"hostedcontrolplanes"}, Verbs: []string{"get"}}}
	t.Run("When a payload runs its operator should have the right to watch what it watches", func(t *testing.T) {
		g, role := NewWithT(t), &rbacv1.Role{Rules: published}
		g.Expect(adaptRole(component.WorkloadContext{}, role)).To(Succeed())
		g.Expect(role.Rules).To(ContainElement(SatisfyAll(HaveField("Resources", ContainElement("hostedcontrolplanes")), HaveField("Verbs", ContainElements("list", "watch")))))
		g.Expect(role.Rules).To(ContainElement(SatisfyAll(HaveField("Resources", ContainElement("events")), HaveField("APIGroups", ContainElement("events.k8s.io")))))
	})
	t.Run("When it is a preview it should stay as published", func(t *testing.T) {
		g, role := NewWithT(t), &rbacv1.Role{Rules: published}
		g.Expect(adaptRole(component.WorkloadContext{PublishedRights: true}, role)).To(Succeed())
		g.Expect(role.Rules).To(Equal(published))
	})
}
