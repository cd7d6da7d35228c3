package config

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hcp.internal/platform/internal/support"
)

// UnservedPolicyName is the name of the policy about kinds that nobody acts on, and of its binding.
const UnservedPolicyName = "unserved.hypershift.openshift.io"

// UnservedPolicy returns a policy that warns whoever creates or changes an object of a kind that is served, so that manifests carry over, and that
// no controller acts on, in an installation that lacks what is off, and the binding that puts it in force. kubectl prints the warning; nothing is refused.
func UnservedPolicy(off ...support.Switch) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	crds, err := CRDs(TechPreviewSet)
	if err != nil {
		panic(err) // embedded, and tests read them
	}
	var rules []admissionv1.NamedRuleWithOperations
	var texts []string
	for _, crd := range crds {
		i := slices.IndexFunc(support.Kinds, func(k support.Kind) bool { return k.Group == crd.Spec.Group && k.Kind == crd.Spec.Names.Kind })
		if i < 0 {
			continue
		}
		text := support.Kinds[i].Warning(off...)
		if text == "" {
			continue
		}
		rules = append(rules, admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{APIGroups: []string{crd.Spec.Group}, APIVersions: []string{"*"}, Resources: []string{crd.Spec.Names.Plural},
				Scope: ptr.To(admissionv1.AllScopes)},
		}})
		texts = append(texts, fmt.Sprintf("'%s': '%s'", crd.Spec.Names.Plural, strings.ReplaceAll(text, "'", "\\'")))
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: UnservedPolicyName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Ignore),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: rules},
			Variables: []admissionv1.Variable{{
				Name: "why", Expression: "{" + strings.Join(texts, ", ") + "}",
			}},
			Validations: []admissionv1.Validation{{
				// Operators take their finalizers off what is left of them, and nobody is there to read a warning.
				Expression:        "has(object.metadata.deletionTimestamp)",
				MessageExpression: "'nothing acts on ' + request.kind.kind + ': ' + variables.why[request.resource.resource]",
				Message:           "nothing acts on objects of this kind",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: UnservedPolicyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        UnservedPolicyName,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Warn},
		},
	}
	return policy, binding
}
