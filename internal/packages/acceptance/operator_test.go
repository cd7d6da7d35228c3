package acceptance

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/packagestest"
)

// openShift makes the API server look like OpenShift's, behind a proxy.
func (w world) openShift(t *testing.T) {
	t.Helper()
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for kind, plural := range map[string]string{"ClusterVersion": "clusterversions", "Proxy": "proxies"} {
		definitions = append(definitions, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".config.openshift.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "config.openshift.io", Scope: apiextensionsv1.ClusterScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
				}},
			},
		})
	}
	w.Env.Install(t, definitions...)
	w.ensure(t,
		`{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, status: {history: [{state: Completed, version: 4.20.3}]}}`,
		`{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, status: {httpProxy: "http://proxy:3128", noProxy: .local}}`)
}

// template is a ConfigMap "NAME-seen" that shows what templates see.
const template = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .package.metadata.name }}-seen
  namespace: {{ .package.metadata.namespace | default "NAMESPACE" }}
  annotations: {package-operator.run/phase: a}
data:
  image: {{ .package.image | quote }}
  app: {{ get .images "app" | quote }}
  openShift: {{ .environment.openShift.version | quote }}
  proxy: {{ .environment.proxy.httpProxy | quote }}
  kubernetes: {{ .environment.kubernetes.version | quote }}
  hosted: '{{ if hasKey .environment.hyperShift "hostedCluster" }}{{ .environment.hyperShift.hostedCluster.metadata.name }}{{ end }}'
`

func manifest(name, more string) []byte {
	return []byte("apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: " + name +
		"}\nspec:\n  scopes: [Namespaced, Cluster]\n  phases: [{name: a}]\n" + more)
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// seen is a package with that ConfigMap and a locked image.
func seen() load.Files {
	return load.Files{
		"manifest.yaml": manifest("web", "  images: [{name: app, image: 'quay.example/team/app:v1'}]\n"),
		"manifest.lock.yaml": []byte("apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifestLock\nspec: {images: [{name: app, image: 'quay.example/team/app:v1', digest: '" +
			digest + "'}]}\n"),
		"seen.yaml.gotmpl": []byte(template),
	}
}

func install(namespace, name, image, component string) string {
	kind, metadata := "Package", "{namespace: "+namespace+", name: "+name+"}"
	if namespace == "" {
		kind, metadata = "ClusterPackage", "{name: "+name+"}"
	}
	return fmt.Sprintf("{apiVersion: package-operator.run/v1alpha1, kind: %s, metadata: %s, spec: {image: %q, component: %q}}", kind, metadata, image, component)
}

// TestOperator runs the program alone against an API server, as "hcp-operators package-operator-manager --kubeconfig F --namespace NS" does.
func TestOperator(t *testing.T) {
	w := newWorld(t)
	open := packagestest.NewRegistry(t)
	closed, forgotten := private(t, open, "robot", "hunter2"), private(t, open, "nobody", "knows")
	w.openShift(t)
	w.create(t,
		`{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-operator}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-a}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: NAMESPACE-operator, name: puller}, imagePullSecrets: [{name: missing}, {name: broken}, {name: old}, {name: good}]}`,
		`{apiVersion: v1, kind: Secret, metadata: {namespace: NAMESPACE-operator, name: broken}, type: Opaque, data: {x: eA==}}`,
		fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {namespace: NAMESPACE-operator, name: old}, type: kubernetes.io/dockercfg, stringData: {.dockercfg: '{"%s": {"username": "robot", "password": "wrong"}}'}}`, closed),
		fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {namespace: NAMESPACE-operator, name: good}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths": {"%s/mirror": {"auth": "%s"}}}'}}`,
			closed, base64.StdEncoding.EncodeToString([]byte("robot:hunter2"))))
	w.hostedCluster(t, w.home, "a")
	operators := w.home + "-operator"
	o := w.start(t, operators, "-service-account-namespace", operators, "-service-account-name", "puller",
		"-image-prefix-overrides", "quay.example/team="+closed+"/mirror", "-registry-host-overrides", "docker.example="+open.Host)

	t.Run("When it runs it should be healthy and hold the lease", func(t *testing.T) {
		g := NewWithT(t)
		for _, path := range []string{"healthz", "readyz"} {
			g.Eventually(func() (string, error) { return get("http://" + o.Health + "/" + path) }, patience).Should(HavePrefix("200\n"))
		}
		lease := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
		g.Eventually(func() error {
			return w.Client.Get(t.Context(), client.ObjectKey{Namespace: operators, Name: "8a4hp84a6s.package-operator-lock"}, lease)
		}, patience).Should(Succeed())
	})
	t.Run("When a prefix is replaced and the registry wants a password it should use the pull secrets", func(t *testing.T) {
		g := NewWithT(t)
		w.push(t, open, "mirror/web:v1", seen())
		w.create(t, install(w.home, "web", "quay.example/team/web:v1", ""))
		w.available(t, w.home, "web")
		data := w.data(t, w.home, "web-seen")
		g.Expect(data).To(HaveKeyWithValue("image", closed+"/mirror/web:v1"))
		g.Expect(data).To(HaveKeyWithValue("app", closed+"/mirror/app@"+digest))
		g.Expect(data).To(HaveKeyWithValue("openShift", "4.20.3"))
		g.Expect(data).To(HaveKeyWithValue("proxy", "http://proxy:3128"))
		g.Expect(data["kubernetes"]).To(HavePrefix("v1."))
		g.Expect(data).To(HaveKeyWithValue("hosted", ""))
		od := &v1alpha1.ObjectDeployment{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.home, Name: "web"}, od)).To(Succeed())
		g.Expect(od.Annotations).To(HaveKeyWithValue(v1alpha1.PackageSourceImageAnnotation, closed+"/mirror/web:v1"))
	})
	t.Run("When a registry has a stand-in it should pull from there, and show the name that was asked for", func(t *testing.T) {
		g := NewWithT(t)
		w.create(t, install(w.home, "moved", "docker.example/mirror/web:v1", ""))
		w.available(t, w.home, "moved")
		g.Expect(w.data(t, w.home, "moved-seen")).To(HaveKeyWithValue("image", "docker.example/mirror/web:v1"))
	})
	t.Run("When no pull secret fits it should say so, without any of them", func(t *testing.T) {
		g := NewWithT(t)
		w.create(t, install(w.home, "denied", forgotten+"/mirror/web:v1", ""))
		message := w.condition(t, w.home, "denied", "Unpacked", "False", "ImagePullBackOff")
		g.Expect(message).To(ContainSubstring("401"))
		g.Expect(message).NotTo(Or(ContainSubstring("robot"), ContainSubstring("hunter2"), ContainSubstring("puller"), ContainSubstring("/good"), ContainSubstring("wrong")))
	})
	t.Run("When a package is in the namespace of a hosted cluster it should know which", func(t *testing.T) {
		g := NewWithT(t)
		w.create(t, install(w.home+"-a", "web", "quay.example/team/web:v1", ""))
		w.available(t, w.home+"-a", "web")
		g.Expect(w.data(t, w.home+"-a", "web-seen")).To(HaveKeyWithValue("hosted", "a"))
	})
	t.Run("When packages have constraints it should hold them", func(t *testing.T) { constraints(t, w, open) })
	t.Run("When a package has components it should install the one that is asked for", func(t *testing.T) { components(t, w, open) })
	t.Run("When a package has conditions it should leave out what they exclude", func(t *testing.T) { filters(t, w, open) })
	t.Run("When templates make packages from other objects they should follow them", func(t *testing.T) { templates(t, w) })
	t.Run("When the environment changes templates of both scopes should follow it", func(t *testing.T) { environments(t, w) })
	t.Run("When packages come and go their metrics should, too", func(t *testing.T) { series(t, w, o) })
	t.Run("When it is told to end it should do so with success, and the next one go on", func(t *testing.T) {
		g := NewWithT(t)
		next := w.start(t, operators, "-registry-host-overrides", "docker.example="+open.Host, "-package-hash-modifier", "7")
		g.Eventually(func() (string, error) { return get("http://" + next.Health + "/readyz") }, patience).Should(HavePrefix("200\n"))
		g.Expect(o.stop(g)).To(Succeed())
		w.create(t, install(w.home, "later", "docker.example/mirror/web:v1", ""))
		w.Eventually(t, &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.home, Name: "later"}}, func() error { return nil })
		g.Eventually(func() error {
			return w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.home, Name: "later-seen"}, &corev1.ConfigMap{})
		}, patience).Should(Succeed(), "the lease is given back, so the next one need not wait until it runs out")
	})
}

func constraints(t *testing.T, w world, r *packagestest.Registry) {
	g := NewWithT(t)
	one := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: '{{ .package.metadata.name }}-only'\n  namespace: NAMESPACE\n  annotations: {package-operator.run/phase: a}\n")
	w.push(t, r, "single:v1", load.Files{
		"manifest.yaml": manifest("single-NAMESPACE", "  constraints: [{uniqueInScope: {}}, {platform: [OpenShift]}, {platformVersion: {name: OpenShift, range: '>=4.20'}}]\n"), "a.yaml.gotmpl": one,
	})
	w.push(t, r, "older:v1", load.Files{"manifest.yaml": manifest("older", "  constraints: [{platformVersion: {name: OpenShift, range: '<4.20'}}]\n"), "a.yaml.gotmpl": one})
	const unique = "Constraints not met: package has unique constraint set but another package in the same namespace uses the same manifest"
	w.create(t, install(w.home, "first", r.Host+"/single:v1", ""))
	w.available(t, w.home, "first")
	w.create(t, install(w.home, "second", r.Host+"/single:v1", ""), install("", w.home+"-global", r.Host+"/single:v1", ""), install(w.home, "old", r.Host+"/older:v1", ""))
	g.Expect(w.condition(t, w.home, "second", "Invalid", "True", "ConstraintsFailed")).To(Equal(unique))
	w.available(t, "", w.home+"-global") // its scope is the cluster, where it is the only one
	g.Expect(w.condition(t, w.home, "old", "Invalid", "True", "ConstraintsFailed")).To(Equal("Constraints not met: OpenShift 4.20.3 does not meet constraint <4.20"))
	w.create(t, install("", w.home+"-another", r.Host+"/single:v1", ""))
	g.Expect(w.condition(t, "", w.home+"-another", "Invalid", "True", "ConstraintsFailed")).To(Equal(unique))
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.home, Name: "second"}, &v1alpha1.ObjectDeployment{})).NotTo(Succeed(), "nothing is installed")

	g.Expect(w.Client.Delete(t.Context(), &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.home, Name: "first"}})).To(Succeed())
	w.available(t, w.home, "second") // tried again by itself
}

func components(t *testing.T, w world, r *packagestest.Registry) {
	g := NewWithT(t)
	object := func(name string) []byte {
		return []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  annotations: {package-operator.run/phase: a}\n")
	}
	w.push(t, r, "shop:v1", load.Files{
		"manifest.yaml": manifest("shop", "  components: {}\n"), "root.yaml": object("shop-root"),
		"components/backend/manifest.yaml": manifest("named-otherwise", ""), "components/backend/b.yaml": object("shop-backend"),
		"components/frontend/manifest.yaml": manifest("frontend", ""), "components/frontend/f.yaml": object("shop-frontend"),
	})
	w.create(t, install(w.home, "shop", r.Host+"/shop:v1", ""), install(w.home, "backend", r.Host+"/shop:v1", "backend"), install(w.home, "nothing", r.Host+"/shop:v1", "x"))
	w.available(t, w.home, "shop")
	w.available(t, w.home, "backend")
	for name, owner := range map[string][2]string{"shop-root": {"shop", "shop"}, "shop-backend": {"backend", "backend"}} {
		cm := &corev1.ConfigMap{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.home, Name: name}, cm)).To(Succeed())
		g.Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.PackageLabel, owner[0]), "a component is called as its folder is")
		g.Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.InstanceLabel, owner[1]))
	}
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.home, Name: "shop-frontend"}, &corev1.ConfigMap{})).NotTo(Succeed())
	g.Expect(w.condition(t, w.home, "nothing", "Invalid", "True", "LoadError")).To(Equal("Component not found [x]"))
}

func filters(t *testing.T, w world, r *packagestest.Registry) {
	g := NewWithT(t)
	object := func(name, more string) []byte {
		return []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  annotations:\n    package-operator.run/phase: a\n" + more)
	}
	w.push(t, r, "filtered:v1", load.Files{
		"manifest.yaml": manifest("filtered", `  filter:
    conditions: [{name: openshift, expression: "has(environment.openShift)"}, {name: small, expression: "config.size < 3"}]
    paths: [{glob: "plain/**", expression: "!cond.openshift"}]
  config: {openAPIV3Schema: {type: object, properties: {size: {type: integer, default: 5}}}}
`),
		"always.yaml":      object("filtered-always", ""),
		"plain/plain.yaml": object("filtered-plain", ""),
		"small.yaml":       object("filtered-small", "    package-operator.run/condition: cond.small\n"),
		"large.yaml":       object("filtered-large", "    package-operator.run/condition: \"!cond.small && package.metadata.name == 'filtered'\"\n"),
	})
	w.create(t, install(w.home, "filtered", r.Host+"/filtered:v1", ""))
	w.available(t, w.home, "filtered")
	for name, there := range map[string]bool{"always": true, "plain": false, "small": false, "large": true} {
		err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.home, Name: "filtered-" + name}, &corev1.ConfigMap{})
		g.Expect(err == nil).To(Equal(there), name)
	}
}

// templates makes a Package and a ClusterPackage of what a ConfigMap and a Secret say.
func templates(t *testing.T, w world) {
	g := NewWithT(t)
	const source = `sources: [{apiVersion: v1, kind: ConfigMap, namespace: NAMESPACE, name: image, items: [{key: .data.image, destination: .image}]},
    {apiVersion: v1, kind: Secret, namespace: NAMESPACE, name: hidden, items: [{key: .data.component, destination: .component}]}]`
	w.create(t,
		`{apiVersion: package-operator.run/v1alpha1, kind: ObjectTemplate, metadata: {namespace: NAMESPACE, name: made}, spec: {`+source+`,
  template: "apiVersion: package-operator.run/v1alpha1\nkind: Package\nmetadata: {name: made}\nspec: {image: '{{ .config.image }}', component: '{{ .config.component | b64dec }}'}\n"}}`,
		`{apiVersion: package-operator.run/v1alpha1, kind: ClusterObjectTemplate, metadata: {name: NAMESPACE-made}, spec: {`+source+`,
  template: "apiVersion: package-operator.run/v1alpha1\nkind: ClusterPackage\nmetadata: {name: NAMESPACE-made}\nspec: {image: '{{ .config.image }}', component: '{{ .config.component | b64dec }}'}\n"}}`)
	ot := &v1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.home, Name: "made"}}
	w.Eventually(t, ot, packagestest.HasCondition(ot, &ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid, "True", "SourceError", ""))
	w.create(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NAMESPACE, name: image}, data: {image: "docker.example/none:v1"}}`,
		`{apiVersion: v1, kind: Secret, metadata: {namespace: NAMESPACE, name: hidden}, stringData: {component: inner}}`)
	p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.home, Name: "made"}}
	w.Eventually(t, p, func() error { return nil })
	cluster := &v1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: w.home + "-made"}}
	w.Eventually(t, cluster, func() error { return nil })
	for _, spec := range []v1alpha1.PackageSpec{p.Spec, cluster.Spec} {
		g.Expect(spec.Image).To(Equal("docker.example/none:v1"))
		g.Expect(spec.Component).To(Equal("inner"))
	}
	// The conditions of what was made are the template's.
	w.Eventually(t, ot, func() error {
		for _, c := range ot.Status.Conditions {
			if c.Type == "Unpacked" && c.Reason == "ImagePullBackOff" {
				return nil
			}
		}
		return fmt.Errorf("conditions are %v", ot.Status.Conditions)
	})
	g.Expect(w.Client.Delete(t.Context(), ot)).To(Succeed())
	w.Gone(t, p)
}

func environments(t *testing.T, w world) {
	g := NewWithT(t)
	const shows = `"apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: NAMESPACE, name: %s}\ndata: {proxy: '{{ .environment.proxy.httpProxy }}'}\n"`
	w.create(t,
		`{apiVersion: package-operator.run/v1alpha1, kind: ObjectTemplate, metadata: {namespace: NAMESPACE, name: proxy}, spec: {sources: [], template: `+fmt.Sprintf(shows, "proxy")+`}}`,
		`{apiVersion: package-operator.run/v1alpha1, kind: ClusterObjectTemplate, metadata: {name: NAMESPACE-proxy}, spec: {sources: [], template: `+fmt.Sprintf(shows, "cluster-proxy")+`}}`)
	proxy := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": map[string]any{"name": "cluster"}}}
	is := func(url string) {
		for _, name := range []string{"proxy", "cluster-proxy"} {
			g.Eventually(func() string {
				cm := &corev1.ConfigMap{}
				_ = w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.home, Name: name}, cm) // not there yet
				return cm.Data["proxy"]
			}, patience).Should(Equal(url), name)
		}
	}
	change := func(url string) {
		g.Expect(w.Client.Patch(t.Context(), proxy, client.RawPatch(types.MergePatchType, []byte(`{"status":{"httpProxy":"`+url+`"}}`)))).To(Succeed())
	}
	is("http://proxy:3128")
	change("http://other:3128")
	is("http://other:3128")
	change("http://proxy:3128")
}

func series(t *testing.T, w world, o *operator) {
	g := NewWithT(t)
	metrics := func() (string, error) { return get("http://" + o.Metrics + "/metrics") }
	for _, pattern := range []string{
		`package_operator_package_availability\{image="docker.example/mirror/web:v1",pko_name="moved",pko_namespace="NAMESPACE"\} 1`,
		`package_operator_package_availability\{image="[^"]+",pko_name="NAMESPACE-global",pko_namespace=""\} 1`,
		`package_operator_package_revision\{pko_name="moved",pko_namespace="NAMESPACE"\} 1`,
		`package_operator_package_created_timestamp_seconds\{pko_name="moved",pko_namespace="NAMESPACE"\} `,
		`package_operator_package_load_duration_seconds\{pko_name="moved",pko_namespace="NAMESPACE"\} `,
		`package_operator_object_set_created_timestamp_seconds\{pko_name="moved-\w+",pko_namespace="NAMESPACE",pko_package_instance="moved"\} `,
		`package_operator_object_set_succeeded_timestamp_seconds\{image="[^"]+",pko_name="moved-\w+",pko_namespace="NAMESPACE",pko_package_instance="moved"\} `,
		`package_operator_managed_cache_informers_total\{owner="123-456"\} [1-9]`,
		`package_operator_managed_cache_objects_total\{gvk="/v1, Kind=ConfigMap",owner="123-456"\} [1-9]`,
	} {
		g.Eventually(metrics, patience).Should(MatchRegexp(strings.ReplaceAll(pattern, "NAMESPACE", w.home)))
	}
	g.Expect(w.Client.Delete(t.Context(), &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.home, Name: "moved"}})).To(Succeed())
	g.Eventually(metrics, patience).ShouldNot(ContainSubstring(`pko_name="moved`))
}
