package validate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/support"
)

// messageAllHeeded is that of AllFieldsHeeded when there is nothing to tell.
const messageAllHeeded = "Every field and annotation that is set is acted on"

// fieldFindings are what the spec sets and nobody acts on.
func fieldFindings(hc *hyperv1.HostedCluster, payload bool) []support.Finding {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&hc.Spec)
	if err != nil {
		panic(fmt.Sprintf("a HostedCluster can't be encoded: %v", err)) // it has been decoded from JSON
	}
	return support.Of("HostedCluster").FindingsOf(spec, string(hc.Spec.Platform.Type), payload)
}

// AllFieldsHeeded is the condition of that name: it tells of fields and annotations that are set and that nobody acts on. payload: the release is one of
// OpenShift. off are the parts that the installation lacks.
func AllFieldsHeeded(hc *hyperv1.HostedCluster, payload bool, off ...support.Switch) metav1.Condition {
	found := append(fieldFindings(hc, payload), support.AnnotationFindings(hc.Annotations, payload, off...)...)
	if len(found) > 0 {
		return conditions.False(hyperv1.AllFieldsHeeded, hyperv1.FieldsNotHeededReason, support.Message(found))
	}
	return conditions.True(hyperv1.AllFieldsHeeded, hyperv1.AsExpectedReason, messageAllHeeded)
}

// fieldsAreNotRefused refuses what must not be left out silently, before anything is made. A cluster that exists goes on: what it has is told by
// AllFieldsHeeded, and an upgrade of the operator stops nothing. Platforms have a condition of their own.
func fieldsAreNotRefused(in *Input) []string {
	if in.Started {
		return nil
	}
	var mistakes []string
	for _, f := range fieldFindings(in.HC, in.Payload) {
		if f.Entry.Verdict == support.Refused && !strings.HasPrefix(f.Entry.Path, "spec.platform") {
			mistakes = append(mistakes, f.String())
		}
	}
	return mistakes
}
