package nodepool

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/support"
)

// heeded tells of fields and annotations that are set and that nobody acts on.
func (p *pass) heeded() {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.spec())
	if err != nil {
		panic(fmt.Sprintf("a NodePool can't be encoded: %v", err)) // it has been decoded from JSON
	}
	found := append(support.Of("NodePool").Findings(spec, string(p.spec().Platform.Type)), support.AnnotationFindings(p.obs.pool.Annotations, p.payloadRelease())...)
	if p.payloadRelease() { // the table is about Kubernetes releases
		found = slices.DeleteFunc(found, func(f support.Finding) bool {
			return slices.ContainsFunc(payloadOnly, func(field string) bool {
				return f.Field == field || strings.HasPrefix(f.Field, field+".") || strings.HasPrefix(f.Field, field+"[")
			})
		})
	}
	if len(found) > 0 {
		p.set(bad(hyperv1.AllFieldsHeeded, hyperv1.FieldsNotHeededReason, support.Message(found)))
		return
	}
	p.set(good(hyperv1.AllFieldsHeeded))
}
