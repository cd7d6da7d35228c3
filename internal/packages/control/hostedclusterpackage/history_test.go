package hostedclusterpackage

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/metrics"
)

func TestHistory(t *testing.T) {
	t.Run("When many templates follow a good one it should forget the oldest, and not the one to return to", func(t *testing.T) {
		w := newWorld(t, nil, "a")
		r := w.reconciler(w.c)
		w.pass(r)
		w.settle("a", true)
		w.pass(r)
		for i := 2; i < 2+2*historyLimit; i++ {
			w.template(fmt.Sprintf("v%d", i))
			w.pass(r)
		}
		list, err := History(t.Context(), w.c, w.ns, w.owner)
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(len(list)).To(BeNumerically("<=", historyLimit+1))
		w.g.Expect(list[0].Spec.Image).To(HaveSuffix(":v1"))
		w.g.Expect(list[0].Completed).NotTo(BeNil())
		w.g.Expect(list[len(list)-1].Spec.Image).To(HaveSuffix(fmt.Sprintf(":v%d", 1+2*historyLimit)))
		// Whoever starts next finds it, too.
		in, err := Observe(t.Context(), w.c, w.read())
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(in.Settings.HasGood).To(BeTrue())
	})
	t.Run("When all clusters sleep a new template should be none to return to before one of them has it and is up", func(t *testing.T) {
		w := newWorld(t, nil, "a", "b")
		r, recorded := w.reconciler(w.c), recorded{}
		r.Metrics = recorded
		w.pass(r)
		w.settle("a", true)
		w.settle("b", true)
		w.pass(r)
		w.sleeps("a", true)
		w.sleeps("b", true)
		w.pass(r)
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 0/0 packages progressed."))
		w.template("v2")
		w.pass(r)
		completed := func() (images []string) {
			list, err := History(t.Context(), w.c, w.ns, w.owner)
			w.g.Expect(err).NotTo(HaveOccurred())
			for _, rev := range list {
				if rev.Completed != nil {
					images = append(images, rev.Spec.Image)
				}
			}
			return images
		}
		w.g.Expect(completed()).To(Equal([]string{"registry.example/addon:v1"}))
		w.g.Expect(w.condition("Progressing")).To(Equal(fmt.Sprintf(
			"True NotAllPackagesProgressed 0/0 packages progressed. Hosted clusters that sleep, and have their turn when they wake (2): %[1]s/a, %[1]s/b.", w.ns)))
		w.g.Expect(recorded[w.ns].State).To(Equal(metrics.RolloutPaused), "nobody need be called")
		w.sleeps("a", false)
		w.pass(r)
		w.g.Expect(w.image("a")).To(HaveSuffix(":v2"))
		w.g.Expect(completed()).To(HaveLen(1))
		w.settle("a", true)
		w.pass(r)
		w.g.Expect(completed()).To(Equal([]string{"registry.example/addon:v1", "registry.example/addon:v2"}))
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 1/1 packages progressed."))
		w.g.Expect(recorded[w.ns].State).To(Equal(metrics.RolloutComplete))
		w.g.Expect(w.image("b")).To(HaveSuffix(":v1"))
	})
}

func TestNoHistory(t *testing.T) {
	for name, namespace := range map[string]string{
		"When the operator has no namespace it should roll out all the same":       "",
		"When the operator's namespace is missing it should roll out all the same": "there-is-no-such-namespace",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, "a", "b")
			r := w.reconciler(w.c)
			r.Namespace = namespace
			w.pass(r)
			w.settle("a", true)
			w.settle("b", true)
			w.pass(r)
			w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 2/2 packages progressed."))
			w.template("v2")
			w.pass(r)
			w.g.Expect(w.image("a")).To(HaveSuffix(":v2"))
			w.g.Expect(w.image("b")).To(HaveSuffix(":v1"), "maxUnavailable is 1")
			w.settle("a", true)
			w.pass(r)
			w.g.Expect(w.image("b")).To(HaveSuffix(":v2"))
		})
	}
}

func TestChanges(t *testing.T) {
	base := template{Labels: map[string]string{"a": "1"}, Spec: packagesv1.PackageSpec{Image: "x", Config: &runtime.RawExtension{Raw: []byte(`{"replicas":1,"log":{"level":"info","file":"f"}}`)}}}
	for name, c := range map[string]struct {
		change func(*template)
		want   []string
	}{
		"When nothing differs it should say nothing": {func(*template) {}, nil},
		"When the order of keys differs it should say nothing": {func(x *template) {
			x.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"log":{"file":"f","level":"info"},"replicas":1}`)}
		}, nil},
		"When the image differs it should say so": {func(x *template) { x.Spec.Image = "y" }, []string{"image"}},
		"When a part of the configuration differs it should say where": {
			func(x *template) {
				x.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"replicas":2,"log":{"level":"debug","file":"f"}}`)}
			}, []string{"config.log.level", "config.replicas"},
		},
		"When the configuration goes it should say what goes": {
			func(x *template) { x.Spec.Config = nil }, []string{"config.log.file", "config.log.level", "config.replicas"},
		},
		"When labels and annotations differ it should say which": {
			func(x *template) { x.Labels, x.Annotations = nil, map[string]string{"b": "2"} }, []string{"annotations.b", "labels.a"},
		},
		"When it is paused it should say so": {func(x *template) { x.Spec.Paused = true }, []string{"paused"}},
	} {
		t.Run(name, func(t *testing.T) {
			after := base
			c.change(&after)
			NewWithT(t).Expect(Revision{template: after}.Changes(Revision{template: base})).To(Equal(c.want))
		})
	}
}
