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
	policy, binding := policyOn(ConnectorPolicyName, "package-operator.run", []string{"objectsetphases", "objectsetphases/status"}, []admissionv1.OperationType{admissionv1.Update}, admissionv1.Deny)
	policy.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name:       "by-a-connector",
		Expression: "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':" + connector + "'",
	}}
	policy.Spec.Validations = []admissionv1.Validation{
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
	}
	return policy, binding
}
