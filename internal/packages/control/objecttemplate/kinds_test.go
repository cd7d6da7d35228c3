package objecttemplate

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/phase"
)

// withoutKinds is a Reconciler whose API server has no kinds.
func withoutKinds() *Reconciler {
	return &Reconciler{
		Engine:        &phase.Engine{Mapper: meta.NewDefaultRESTMapper(nil)},
		Environment:   NewEnvironment(func(context.Context, string) (any, error) { return map[string]any{}, nil }),
		RetryInterval: 7 * time.Second, OptionalRetryInterval: time.Minute,
	}
}

func TestKindsThatAreNotThereYet(t *testing.T) {
	widgets := func(optional bool) *v1alpha1.ObjectTemplate {
		return &v1alpha1.ObjectTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "template"},
			Spec: v1alpha1.ObjectTemplateSpec{
				Template: "{apiVersion: example.com/v1, kind: Widget, metadata: {name: made}}",
				Sources:  []v1alpha1.ObjectTemplateSource{{APIVersion: "example.com/v1", Kind: "Widget", Name: "source", Optional: optional}},
			},
		}
	}
	const missing = `example.com/v1, Kind=Widget not registered on the api server.`
	t.Run("When the kind of a source is not there yet it should be looked for again", func(t *testing.T) {
		g, bad := NewWithT(t), &invalid{}
		_, _, err := withoutKinds().collect(t.Context(), widgets(false))
		g.Expect(errors.As(err, &bad)).To(BeTrue())
		g.Expect(bad).To(MatchError("for source Widget /source: " + missing))
		g.Expect(bad.after).To(Equal(7 * time.Second))
	})
	t.Run("When the kind of an optional source is not there yet the source should be missing", func(t *testing.T) {
		g := NewWithT(t)
		config, missing, err := withoutKinds().collect(t.Context(), widgets(true))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(missing).To(BeTrue())
		g.Expect(config).To(BeEmpty())
	})
	t.Run("When the kind of what is rendered is not there yet it should be tried again", func(t *testing.T) {
		g, bad := NewWithT(t), &invalid{}
		_, err := withoutKinds().render(t.Context(), widgets(true), nil)
		g.Expect(errors.As(err, &bad)).To(BeTrue())
		g.Expect(bad).To(MatchError("Widget /made: " + missing))
		g.Expect(bad.after).To(Equal(30 * time.Second))
	})
}
