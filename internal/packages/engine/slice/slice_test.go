package slice_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/slice"
	. "hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestChunks(t *testing.T) {
	big := func(bytes int) v1alpha1.ObjectSetObject {
		return ConfigMap("x", map[string]any{"v": strings.Repeat("a", bytes)})
	}
	t.Run("When objects fit they should stay", func(t *testing.T) {
		g := NewWithT(t)
		chunks, err := slice.Chunks("", []v1alpha1.ObjectSetObject{big(500_000), big(500_000)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(chunks).To(BeNil())
	})
	t.Run("When phases fit alone but not together it should take the largest out, until they do", func(t *testing.T) {
		g := NewWithT(t)
		phases := []v1alpha1.ObjectSetTemplatePhase{Phase("a", big(300_000)), Phase("b", big(900_000)), Phase("c", big(400_000)), Phase("d", big(700_000))}
		plan, err := slice.Plan("", phases)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plan[0]).To(BeNil())
		g.Expect(plan[1]).To(Equal([][]v1alpha1.ObjectSetObject{phases[1].Objects}))
		g.Expect(plan[2]).To(BeNil())
		g.Expect(plan[3]).To(HaveLen(1))
		plan, err = slice.Plan("", phases[:1])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plan).To(HaveExactElements(BeNil()))
		plan, err = slice.Plan(slice.NoOp, phases)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plan).To(HaveEach(BeNil()), "who wants none gets none")
	})
	t.Run("When the strategy is unknown it should say which there are", func(t *testing.T) {
		_, err := slice.Chunks("Halves", nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("NoOp, EachObject or BinpackNextFit")))
	})
	t.Run("When objects are cut none should be lost, doubled or moved", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			var objects []v1alpha1.ObjectSetObject
			for _, size := range rapid.SliceOfN(rapid.IntRange(0, 600_000), 0, 8).Draw(rt, "sizes") {
				objects = append(objects, big(size))
			}
			strategy := rapid.SampledFrom([]slice.Strategy{slice.EachObject, slice.BinpackNextFit}).Draw(rt, "strategy")
			chunks, err := slice.Chunks(strategy, objects)
			g := NewWithT(rt)
			g.Expect(err).NotTo(HaveOccurred())
			if chunks == nil {
				return
			}
			var all []v1alpha1.ObjectSetObject
			for _, c := range chunks {
				g.Expect(c).NotTo(BeEmpty())
				all = append(all, c...)
			}
			g.Expect(len(all)).To(Equal(len(objects)))
			for i := range all {
				g.Expect(&all[i].Object.Object).NotTo(BeNil())
				g.Expect(len(all[i].Object.Object["data"].(map[string]any)["v"].(string))).To(Equal(len(objects[i].Object.Object["data"].(map[string]any)["v"].(string))))
			}
		})
	})
}

func TestSlicer(t *testing.T) {
	for _, s := range scope.Both() {
		t.Run("When a "+s.Kind("ObjectDeployment")+" is cut twice it should use the same slices, and lose those that it needs no more", func(t *testing.T) {
			g, w := NewWithT(t), Serve(t)
			ns := w.Namespace(t)
			c := s.Client(w.Client)
			name := ns
			od := ObjectDeployment(ns, name, Phase("a", ConfigMap("one", nil), ConfigMap("two", nil)))
			if s.IsCluster() {
				od.Namespace = ""
			}
			g.Expect(c.Create(t.Context(), od)).To(Succeed())
			slicer := slice.Slicer{Scope: s, Client: c}
			first, err := slicer.Cut(t.Context(), od, slice.EachObject, od.Spec.Template.Spec)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(first.Phases[0].Slices).To(HaveLen(2))
			g.Expect(first.Phases[0].Objects).To(BeEmpty())
			again, err := slicer.Cut(t.Context(), od, slice.EachObject, od.Spec.Template.Spec)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(first))

			od.Spec.Template.Spec = first
			od.Spec.Template.Spec.Phases[0].Slices = first.Phases[0].Slices[:1]
			g.Expect(slicer.Collect(t.Context(), od)).To(Succeed())
			list := &v1alpha1.ObjectSliceList{}
			g.Expect(c.List(t.Context(), list, client.MatchingLabels{v1alpha1.SliceOwnerLabel: name})).To(Succeed())
			g.Expect(list.Items).To(HaveLen(1))
			g.Expect(list.Items[0].Name).To(Equal(first.Phases[0].Slices[0]))
		})
	}
}

func TestCollect(t *testing.T) {
	t.Run("When a revision has lost the labels that the selector asks for its slices should stay", func(t *testing.T) {
		g, w := NewWithT(t), Serve(t)
		ns := w.Namespace(t)
		od := ObjectDeployment(ns, "web", Phase("a", ConfigMap("one", nil), ConfigMap("two", nil)))
		g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
		slicer := slice.Slicer{Scope: scope.Namespaced, Client: w.Client}
		cut, err := slicer.Cut(t.Context(), od, slice.EachObject, od.Spec.Template.Spec)
		g.Expect(err).NotTo(HaveOccurred())
		os := ObjectSet(ns, "web-1", 1, cut.Phases...)
		os.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(od, v1alpha1.GroupVersion.WithKind("ObjectDeployment"))}
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		od.Spec.Template.Spec.Phases = nil
		g.Expect(slicer.Collect(t.Context(), od)).To(Succeed())
		list := &v1alpha1.ObjectSliceList{}
		g.Expect(w.Client.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(2))
	})
}
