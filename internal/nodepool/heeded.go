package nodepool

import (
	"fmt"

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
	payload := p.payloadRelease()
	found := append(support.Of("NodePool").FindingsOf(spec, string(p.spec().Platform.Type), payload), support.AnnotationFindings(p.obs.pool.Annotations, payload)...)
	if len(found) > 0 {
		p.set(bad(hyperv1.AllFieldsHeeded, hyperv1.FieldsNotHeededReason, support.Message(found)))
		return
	}
	p.set(good(hyperv1.AllFieldsHeeded))
}
