package patch

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestMetadata(t *testing.T) {
	for name, tc := range map[string]struct {
		patch Metadata
		want  string
	}{
		"When a value is given it should be set":      {Metadata{Annotations: map[string]*string{"a/b": ptr.To("c")}}, `{"metadata":{"annotations":{"a/b":"c"}}}`},
		"When a value is empty it should be set, too": {Metadata{Labels: map[string]*string{"a": ptr.To("")}}, `{"metadata":{"labels":{"a":""}}}`},
		"When there is no value it should be removed": {Metadata{Annotations: map[string]*string{"a": nil}}, `{"metadata":{"annotations":{"a":null}}}`},
		"When a version is given it should be asked for": {
			Metadata{ResourceVersion: "12", Annotations: map[string]*string{"a": ptr.To("b")}}, `{"metadata":{"resourceVersion":"12","annotations":{"a":"b"}}}`,
		},
		"When a text is what Go would quote in its own way it should be JSON": {
			Metadata{Annotations: map[string]*string{"a": ptr.To("\a\x7f\U000e0001\"")}}, `{"metadata":{"annotations":{"a":"\u0007\u007f\udb40\udc01\""}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := tc.patch.Patch()
			g.Expect(p.Type()).To(Equal(types.MergePatchType))
			body, err := p.Data(nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(body).To(MatchJSON(tc.want))
		})
	}
}
