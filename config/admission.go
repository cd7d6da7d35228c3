package config

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// NamePolicyName is the name of the policy about names of HostedClusters, and of its binding.
const NamePolicyName = "names.hostedclusters.hypershift.openshift.io"

// NamePolicy returns a policy that refuses to create a HostedCluster whose control plane would need a namespace with a name longer
// than 63 characters, and the binding that puts it in force. The rules of a CustomResourceDefinition don't see
// metadata.namespace, so this cannot be one of them. Objects that are there already are not judged: they can still be changed and
// deleted.
func NamePolicy() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	policy, binding := policyOn(NamePolicyName, "hypershift.openshift.io", []string{"hostedclusters"}, []admissionv1.OperationType{admissionv1.Create}, admissionv1.Deny)
	policy.Spec.Variables = []admissionv1.Variable{{
		// The same as hostedcluster.Namespace, which replaces dots one for one.
		Name:       "controlPlane",
		Expression: "object.metadata.namespace + '-' + object.metadata.name.replace('.', '-')",
	}}
	policy.Spec.Validations = []admissionv1.Validation{{
		Expression: "size(variables.controlPlane) <= 63",
		MessageExpression: "'metadata.name: the namespace of the control plane, ' + variables.controlPlane + ', would have ' + " +
			"string(size(variables.controlPlane)) + ' characters; at most 63 are allowed: choose a name of at most ' + " +
			"string(62 - size(object.metadata.namespace)) + ' characters, or a shorter namespace'",
		Message: "metadata.name: the namespace of the control plane, {namespace}-{name}, can have at most 63 characters",
		Reason:  ptr.To(metav1.StatusReasonInvalid),
	}}
	return policy, binding
}
