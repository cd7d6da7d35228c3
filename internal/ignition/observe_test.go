package ignition

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
)

func TestReadNodeKeys(t *testing.T) {
	t.Run("When a node is configured it should be labelled with its pool and with what it was made with", func(t *testing.T) {
		g := NewWithT(t)
		var in payload.Inputs
		g.Expect(readNodeKeys(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "token-web-1a2b3c4d", Annotations: map[string]string{hyperv1.NodePoolAnnotation: "clusters/web"}},
			Data:       map[string][]byte{token.NodeLabelsKey: []byte(`{"role":"web"}`)},
		}, &in)).To(Succeed())
		g.Expect(in.Labels).To(Equal(map[string]string{"role": "web", hyperv1.NodePoolLabel: "web", hyperv1.NodePoolFirstConfigVersionLabel: "1a2b3c4d"}))
	})
}
