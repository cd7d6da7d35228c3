package config

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// ConnectorPolicyName is the name of the policy about what connectors to hosted clusters write, and of its binding.
const ConnectorPolicyName = "connectors.package-operator.run"

// connector is the name of the ServiceAccount of connectors, in each namespace of a hosted control plane.
const connector = "package-operator-remote-phase-manager"

// ConnectorPolicy returns a policy that lets a connector to a hosted cluster write nothing of ObjectSetPhases but finalizers and status, and of those of
// its class alone, and the binding that puts it in force. A connector talks to an API server that others own; a Role can't tell classes and fields apart.
func ConnectorPolicy() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: ConnectorPolicyName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{"package-operator.run"}, APIVersions: []string{"*"},
						Resources: []string{"objectsetphases", "objectsetphases/status"}, Scope: ptr.To(admissionv1.NamespacedScope),
					},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name:       "by-a-connector",
				Expression: "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':" + connector + "'",
			}},
			Validations: []admissionv1.Validation{
				{
					Expression: "oldObject.metadata.?labels['" + packagesv1.PhaseClassLabel + "'].orValue('') == 'hosted-cluster'",
					Message:    "the connector writes ObjectSetPhases of class hosted-cluster alone; others are of other programs",
					Reason:     ptr.To(metav1.StatusReasonForbidden),
				},
				{
					Expression: "has(request.subResource) && request.subResource == 'status' || object.spec == oldObject.spec" +
						" && object.metadata.?labels == oldObject.metadata.?labels && object.metadata.?annotations == oldObject.metadata.?annotations" +
						" && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences",
					Message: "the connector writes finalizers and status of ObjectSetPhases, and nothing else",
					Reason:  ptr.To(metav1.StatusReasonForbidden),
				},
			},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ConnectorPolicyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: ConnectorPolicyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	return policy, binding
}
