package config

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// ProtectionPolicyName is the name of the policy about objects that may not be deleted, and of its binding.
const ProtectionPolicyName = "protected.hypershift.openshift.io"

// ProtectionPolicy returns a policy that refuses to delete a HostedCluster or NodePool while it bears annotation delete-protection, and the binding that puts it
// in force. What is being deleted already may be deleted again. The garbage collector and the hypershift-operator, ServiceAccount "operator" of
// operatorNamespace, may delete NodePools, so that they go with their HostedCluster, which has its own protection. No account of a control plane's namespace
// may: none of its programs deletes NodePools.
func ProtectionPolicy(operatorNamespace string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	annotation := hyperv1.DeleteProtectionAnnotation
	policy, binding := policyOn(ProtectionPolicyName, hyperv1.GroupVersion.Group, []string{"hostedclusters", "nodepools"}, []admissionv1.OperationType{admissionv1.Delete}, admissionv1.Deny)
	policy.Spec.Variables = []admissionv1.Variable{
		{Name: "protected", Expression: fmt.Sprintf("has(oldObject.metadata.annotations) && '%[1]s' in oldObject.metadata.annotations && oldObject.metadata.annotations['%[1]s'] == 'true'", annotation)},
		{Name: "follows", Expression: "request.resource.resource == 'nodepools' && (request.userInfo.username == 'system:serviceaccount:kube-system:generic-garbage-collector' || " +
			"request.userInfo.username == 'system:serviceaccount:" + operatorNamespace + ":operator')"},
	}
	policy.Spec.Validations = []admissionv1.Validation{{
		Expression: "!variables.protected || variables.follows || has(oldObject.metadata.deletionTimestamp)",
		MessageExpression: "request.kind.kind + ' ' + oldObject.metadata.namespace + '/' + oldObject.metadata.name + ' is protected from deletion: remove annotation " +
			annotation + " from it first'",
		Message: "it is protected from deletion: remove annotation " + annotation + " from it first",
		Reason:  ptr.To(metav1.StatusReasonForbidden),
	}}
	return policy, binding
}
