package hostedclusterpackage

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

func TestLabels(t *testing.T) {
	w := newWorld(t, nil, "a", "b")
	r := w.reconciler(w.c)
	w.pass(r)
	for _, name := range []string{"a", "b"} {
		w.settle(name, true)
	}
	w.pass(r)
	label := func(value string) {
		w.change(func(p *packagesv1.HostedClusterPackage) {
			p.Spec.Template.Labels = map[string]string{"foo": "bar", "team": value}
			p.Spec.Template.Annotations = map[string]string{"why": "asked for"}
		})
	}
	t.Run("When labels of the template change all Packages should get them at once, and none be taken down", func(*testing.T) {
		label("blue")
		w.pass(r)
		for _, name := range []string{"a", "b"} {
			p := w.pkg(name)
			w.g.Expect(p.Labels).To(Equal(map[string]string{"foo": "bar", "team": "blue"}))
			w.g.Expect(p.Annotations).To(Equal(map[string]string{"why": "asked for"}))
			w.g.Expect(p.Generation).To(Equal(int64(1)))
		}
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 2/2 packages progressed."))
		w.g.Expect(w.read().Status.Processing).To(BeEmpty())
	})
	t.Run("When the template loses labels and annotations no Package should keep them, what others set should stay, and the next pass should write nothing", func(*testing.T) {
		theirs := []byte(`{"metadata":{"labels":{"color":"green"},"annotations":{"note":"mine"}}}`)
		w.g.Expect(w.c.Patch(w.Context(), w.pkg("a"), client.RawPatch(types.MergePatchType, theirs), client.FieldOwner("kubectl-label"))).To(Succeed())
		w.change(func(p *packagesv1.HostedClusterPackage) {
			p.Spec.Template.Labels, p.Spec.Template.Annotations = map[string]string{"team": "blue"}, nil
		})
		w.pass(r)
		a, b := w.pkg("a"), w.pkg("b")
		w.g.Expect(a.Labels).To(Equal(map[string]string{"team": "blue", "color": "green"}))
		w.g.Expect(a.Annotations).To(Equal(map[string]string{"note": "mine"}))
		w.g.Expect(b.Labels).To(Equal(map[string]string{"team": "blue"}))
		w.g.Expect(b.Annotations).To(BeEmpty())
		w.g.Expect([]int64{a.Generation, b.Generation}).To(HaveEach(int64(1)))
		w.pass(r)
		w.g.Expect([]string{w.pkg("a").ResourceVersion, w.pkg("b").ResourceVersion}).To(Equal([]string{a.ResourceVersion, b.ResourceVersion}))
	})
	t.Run("When somebody wants another label it should say so, and counts should be fresh all the same", func(*testing.T) {
		patch := []byte(`{"metadata":{"labels":{"team":"red"}}}`)
		w.g.Expect(w.c.Patch(w.Context(), w.pkg("a"), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-label"))).To(Succeed())
		label("green")
		_, err := r.Reconcile(w.Context(), w.request())
		w.g.Expect(err).To(MatchError(ContainSubstring("conflict")))
		w.g.Expect(w.pkg("a").Labels).To(HaveKeyWithValue("team", "red"))
		w.g.Expect(w.pkg("b").Labels).To(HaveKeyWithValue("team", "green"))
		p := w.read()
		w.g.Expect(p.Status.ObservedGeneration).To(Equal(int32(p.Generation)))
		w.g.Expect(p.Status.UpdatedPackages).To(Equal(int32(2)))
	})
}
