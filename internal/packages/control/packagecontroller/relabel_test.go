package packagecontroller_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

func TestRelabel(t *testing.T) {
	const team = `apiVersion: v1
kind: ConfigMap
metadata:
  name: team
  annotations: {package-operator.run/phase: more, name: team}
data:
  team: {{ dig "team" "nobody" .package.metadata.labels }}
`
	label := func(t *testing.T, w *World, p *v1alpha1.Package, key, value string) {
		t.Helper()
		data := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
		NewWithT(t).Expect(w.Client.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", data))).To(Succeed())
	}
	t.Run("When a label changes that a template reads it should render the package anew", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		p := newPackage(w.Namespace(t), "shop", push(t, r, "web:v1", web("team.yaml.gotmpl", team)))
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, available(p, 1))
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "team"}}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("team", "nobody"))
		label(t, w, p, "team", "blue")
		w.Eventually(t, p, available(p, 2))
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("team", "blue"))
	})
}
