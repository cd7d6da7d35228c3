package config

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// OverridePolicyName is the name of the policy about annotations that reach beyond a hosted cluster, and of its binding.
const OverridePolicyName = "overrides.hostedclusters.hypershift.openshift.io"

// OverrideVerb is the verb on hostedclusters that OverridePolicy asks for.
const OverrideVerb = "override"

// overrides are annotations of HostedClusters with which an author chooses what runs in the management cluster, with which rights and at whose cost, beside those
// whose names end with -image.
var overrides = []string{
	hyperv1.ImageOverridesAnnotation, hyperv1.ControlPlaneOperatorImageLabelsAnnotation, hyperv1.PodSecurityAdmissionLabelOverrideAnnotation,
	hyperv1.ControlPlanePriorityClass, hyperv1.APICriticalPriorityClass, hyperv1.EtcdPriorityClass,
}

// OverridePolicy returns a policy that lets only users with verb OverrideVerb on a HostedCluster set, change or remove annotations that name images of its
// control plane, the Pod Security level of its namespace or the priority of its pods, and the binding that puts it in force: with Deny, or with Warn, which
// tells the user and the audit log, and refuses nothing. Everything else can be changed by whoever may change the object, also where such an annotation is
// there already.
func OverridePolicy(action admissionv1.ValidationAction) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	reserved := fmt.Sprintf("(k in ['%s'] || k.startsWith('hypershift.openshift.io/') && k.endsWith('-image'))", strings.Join(overrides, "', '"))
	annotations := func(of string) string {
		return fmt.Sprintf("%[1]s != null && has(%[1]s.metadata.annotations) ? %[1]s.metadata.annotations : {}", of)
	}
	actions := []admissionv1.ValidationAction{action}
	if action == admissionv1.Warn {
		actions = append(actions, admissionv1.Audit)
	}
	policy, binding := policyOn(OverridePolicyName, hyperv1.GroupVersion.Group, []string{"hostedclusters"}, []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, actions...)
	policy.Spec.Variables = []admissionv1.Variable{
		{Name: "now", Expression: annotations("object")},
		{Name: "before", Expression: annotations("oldObject")},
		{Name: "touched", Expression: "variables.now.filter(k, " + reserved + " && (!(k in variables.before) || variables.before[k] != variables.now[k]))" +
			" + variables.before.filter(k, " + reserved + " && !(k in variables.now))"},
	}
	policy.Spec.Validations = []admissionv1.Validation{{
		Expression: "size(variables.touched) == 0 || authorizer.group('" + hyperv1.GroupVersion.Group + "').resource('hostedclusters')" +
			".namespace(object.metadata.namespace).name(object.metadata.name).check('" + OverrideVerb + "').allowed()",
		MessageExpression: "'metadata.annotations: ' + variables.touched.join(', ') + ': only users with verb " + OverrideVerb +
			" on hostedclusters may set, change or remove this: leave it as it is, or have an administrator do it'",
		Message: "metadata.annotations: images, Pod Security level and priorities need verb " + OverrideVerb + " on hostedclusters",
		Reason:  ptr.To(metav1.StatusReasonForbidden),
	}}
	return policy, binding
}
