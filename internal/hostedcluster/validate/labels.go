package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// reservedLabels are labels of pods that our objects select by; so are all with reservedDomains.
var reservedLabels = []string{"app", "name"}

// reservedDomains are prefixes of labels that say what a pod is and whom it may talk to, each with its subdomains.
var reservedDomains = []string{"hypershift.openshift.io", "cluster.x-k8s.io", "kubevirt.io", "network.openshift.io"}

// isReservedLabel tells whether a user must not set the label of a control plane's pods.
func isReservedLabel(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified {
		return slices.Contains(reservedLabels, key)
	}
	return slices.ContainsFunc(reservedDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// labelsAreValid: they become labels and node selectors of pods, which the API server would refuse one by one later.
func labelsAreValid(in *Input) []string {
	var mistakes []string
	for _, field := range []struct {
		name   string
		labels map[string]string
	}{{"spec.labels", in.HC.Spec.Labels}, {"spec.nodeSelector", in.HC.Spec.NodeSelector}} {
		for k, v := range field.labels {
			if field.name == "spec.labels" && isReservedLabel(k) {
				mistakes = append(mistakes, fmt.Sprintf("spec.labels: %q decides what finds pods of the control plane and whom these may talk to: choose a label of your own", k))
			}
			if problems := validation.IsQualifiedName(k); len(problems) > 0 {
				mistakes = append(mistakes, fmt.Sprintf("%s: %q is not a valid label name: %s", field.name, k, problems[0]))
			}
			if problems := validation.IsValidLabelValue(v); len(problems) > 0 {
				mistakes = append(mistakes, fmt.Sprintf("%s[%s]: %q is not a valid label value: %s", field.name, k, v, problems[0]))
			}
		}
	}
	slices.Sort(mistakes)
	return mistakes
}
