package conversion

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answering answers with one definition, as the API server does: with an error for a request that its caller has given up.
type answering struct{ client.Reader }

func (answering) Get(ctx context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.(*metav1.PartialObjectMetadata).Labels = map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}
	return ctx.Err()
}

func TestVersionsAreForAll(t *testing.T) {
	g := NewWithT(t)
	v := newVersions(answering{}, clocktesting.NewFakePassiveClock(time.Now()))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	kind := schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "LocalMachine"}
	_, _ = v.of(gone, kind, false)
	got, err := v.of(t.Context(), kind, false)
	g.Expect(err).NotTo(HaveOccurred(), "When a caller gives up its error should not be that of the next one")
	g.Expect(got).To(Equal("infrastructure.cluster.x-k8s.io/v1beta2"))
}
