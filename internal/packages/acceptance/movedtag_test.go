package acceptance

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/packagestest"
)

// TestMovedTag has a package whose tag is pushed anew after it was installed. Nobody has asked for what is behind it now until the spec changes.
func TestMovedTag(t *testing.T) {
	g, w := NewWithT(t), packagestest.Serve(t)
	httpClient, err := rest.HTTPClientFor(w.Env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	kinds, err := process.NewMapper(w.Env.Config, httpClient)
	g.Expect(err).NotTo(HaveOccurred())
	with := func(name string) load.Files {
		f := files(name)
		f["version.yaml.gotmpl"] = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: version\n  annotations: {package-operator.run/phase: a}\n" +
			"data: {version: {{ .environment.kubernetes.version | quote }}}\n")
		return f
	}
	before, after := with("before"), with("after")
	pinned := "index.docker.io/library/web@" + digestOf(before)
	shelf := shelf{"web:v1": before}
	p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace(t), Name: "web"}, Spec: v1alpha1.PackageSpec{Image: "web:v1"}}
	g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
	deployed := func(g Gomega, environment server) map[string]string {
		key, od := client.ObjectKeyFromObject(p), &v1alpha1.ObjectDeployment{}
		g.Expect(reconcileWith(t.Context(), w.Client, kinds, shelf, environment, key)).To(Succeed())
		g.Expect(w.Client.Get(t.Context(), key, p)).To(Succeed())
		g.Expect(w.Client.Get(t.Context(), key, od)).To(Succeed())
		out := map[string]string{}
		for _, o := range od.Spec.Template.Spec.Phases[0].Objects {
			data, _ := o.Object.Object["data"].(map[string]any)
			version, _ := data["version"].(string)
			out[o.Object.GetName()] = version
		}
		return out
	}
	change := func(t *testing.T, spec string) {
		NewWithT(t).Expect(w.Client.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+spec+`}`)))).To(Succeed())
	}
	g.Expect(deployed(g, "v1.36.3")).To(Equal(map[string]string{"before": "", "version": "v1.36.3"}))

	shelf["web:v1"], shelf[pinned] = after, before
	t.Run("When only the environment changes it should render what is installed", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(deployed(g, "v1.36.4")).To(Equal(map[string]string{"before": "", "version": "v1.36.4"}))
		g.Expect(deployed(g, "v1.36.5")).To(Equal(map[string]string{"before": "", "version": "v1.36.5"}), "and again")
	})
	t.Run("When what is installed is gone from the registry it should stay as it is, and say so", func(t *testing.T) {
		g := NewWithT(t)
		delete(shelf, pinned)
		g.Expect(deployed(g, "v1.36.6")).To(Equal(map[string]string{"before": "", "version": "v1.36.5"}))
		unpacked := conditions.Get(p.Status.Conditions, v1alpha1.ConditionUnpacked)
		g.Expect(unpacked).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", And(ContainSubstring(pinned), ContainSubstring("set spec.image to another")))))
	})
	t.Run("When the spec changes it should install what the tag is now", func(t *testing.T) {
		g := NewWithT(t)
		change(t, `{"config":{}}`)
		g.Expect(deployed(g, "v1.36.6")).To(Equal(map[string]string{"after": "", "version": "v1.36.6"}))
	})
}
