package packagecontroller_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
	. "hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func start(t *testing.T) *World {
	t.Helper()
	return Start(t, packagecontroller.Extend)
}

const webManifest = `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: web}
spec:
  scopes: [Namespaced, Cluster]
  phases: [{name: config}, {name: more}]
  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}}
    probes:
    - fieldsEqual: {fieldA: .metadata.name, fieldB: .metadata.annotations.name}
  config:
    openAPIV3Schema:
      type: object
      properties:
        color: {type: string, default: red, maxLength: 10}
`

// web is a small package; namespace is where its objects go.
func web(extra ...string) load.Files {
	files := load.Files{
		"manifest.yaml": []byte(webManifest),
		"one.yaml.gotmpl": []byte(`apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .package.metadata.name }}-one
  namespace: {{ .package.metadata.namespace | default .package.metadata.name }}
  annotations:
    package-operator.run/phase: config
    name: {{ .package.metadata.name }}-one
data:
  color: {{ .config.color }}
  version: {{ .environment.kubernetes.version | quote }}
`),
	}
	for i := 0; i+1 < len(extra); i += 2 {
		files[extra[i]] = []byte(extra[i+1])
	}
	return files
}

func push(t *testing.T, r *Registry, repository string, files load.Files) string {
	t.Helper()
	img, err := images.Build(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, digest := r.Push(t, repository, img)
	return digest
}

func newPackage(ns, name, image string, config ...string) *v1alpha1.Package {
	p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.PackageSpec{Image: image}}
	if len(config) > 0 {
		p.Spec.Config = &runtime.RawExtension{Raw: []byte(config[0])}
	}
	return p
}

func available(p *v1alpha1.Package, revision int64) func() error {
	return func() error {
		if p.Status.Revision != revision {
			return fmt.Errorf("at revision %d", p.Status.Revision)
		}
		return HasCondition(p, &p.Status.Conditions, "Available", "True", "Available", "Latest Revision is Available.")()
	}
}

func has(p *v1alpha1.Package, conditionType, status, reason, message string) func() error {
	return HasCondition(p, &p.Status.Conditions, conditionType, metav1.ConditionStatus(status), reason, message)
}

func change(t *testing.T, w *World, p *v1alpha1.Package, spec map[string]any) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Expect(w.Client.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", data))).To(Succeed())
}

func TestInstall(t *testing.T) {
	t.Run("When a package is installed, changed and removed it should follow", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		ns := w.Namespace(t)
		image := push(t, r, "web:v1", web())
		p := newPackage(ns, "shop", image)
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, available(p, 1))
		g.Expect(has(p, "Unpacked", "True", "UnpackSuccess", "Unpack job succeeded")()).To(Succeed())
		g.Expect(has(p, "Progressing", "False", "Idle", "Update concluded.")()).To(Succeed())
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: ns, Name: "shop-one"}
		g.Expect(w.Client.Get(t.Context(), key, cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("color", "red"))
		g.Expect(cm.Data["version"]).To(HavePrefix("v1."))
		g.Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.PackageLabel, "web"))
		g.Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.InstanceLabel, "shop"))
		od := &v1alpha1.ObjectDeployment{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), od)).To(Succeed())
		g.Expect(od.Annotations).To(HaveKeyWithValue(v1alpha1.ChangeCauseAnnotation, "Installing web package."))
		g.Expect(od.Annotations).To(HaveKeyWithValue(v1alpha1.PackageConfigAnnotation, "null"))
		g.Expect(od.Annotations).To(HaveKeyWithValue(v1alpha1.PackageSourceImageAnnotation, image))
		g.Expect(image).To(HaveSuffix("@" + od.Annotations[v1alpha1.PackageSourceDigestAnnotation]))

		change(t, w, p, map[string]any{"config": map[string]any{"color": "blue", "unknown": 1}})
		w.Eventually(t, p, available(p, 2))
		g.Expect(w.Client.Get(t.Context(), key, cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("color", "blue"))
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), od)).To(Succeed())
		g.Expect(od.Annotations).To(HaveKeyWithValue(v1alpha1.ChangeCauseAnnotation, "Package config changed."))

		change(t, w, p, map[string]any{"image": push(t, r, "web:v2", web("README.md", "second"))})
		w.Eventually(t, p, has(p, "Unpacked", "True", "UnpackSuccess", ""))
		w.Eventually(t, od, func() error {
			if cause := od.Annotations[v1alpha1.ChangeCauseAnnotation]; cause != "Package source image changed." {
				return fmt.Errorf("change cause is %q", cause)
			}
			return nil
		})

		g.Expect(w.Client.Delete(t.Context(), p, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		w.Gone(t, p)
		w.Gone(t, od)
		w.Gone(t, cm)
	})
	t.Run("When the config is invalid it should say where, write nothing, and go on when it is put right", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		ns := w.Namespace(t)
		p := newPackage(ns, "shop", push(t, r, "web:v1", web()), `{"color":"far too long to be a color"}`)
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, has(p, "Invalid", "True", "LoadError", `spec.config.color: Too long: may not be more than 10 bytes`))
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1alpha1.ObjectDeployment{})).NotTo(Succeed())
		// What is said holds for a generation in which the same is asked for, too: who reads it goes by that.
		for _, paused := range []bool{true, false} {
			change(t, w, p, map[string]any{"paused": paused})
		}
		w.Eventually(t, p, has(p, "Invalid", "True", "LoadError", `spec.config.color: Too long: may not be more than 10 bytes`))
		change(t, w, p, map[string]any{"config": map[string]any{"color": "green"}})
		w.Eventually(t, p, available(p, 1))
		g.Expect(has(p, "Invalid", "True", "", "")()).To(MatchError("no condition Invalid"))
	})
	t.Run("When the API server refuses what it gives it should say so", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		p := newPackage(w.Namespace(t), strings.Repeat("long-", 14)+"name", push(t, r, "web:v1", web()), `{"color":"green"}`)
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, has(p, "Invalid", "True", "LoadError", ""))
		g.Expect(meta.FindStatusCondition(p.Status.Conditions, "Invalid").Message).To(ContainSubstring("63"))
	})
	t.Run("When a registry never answers it should go on with other packages, and say so in the end", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		defer listener.Close() // accepts, and says nothing
		ns := w.Namespace(t)
		for i := range 30 {
			g.Expect(w.Client.Create(t.Context(), newPackage(ns, fmt.Sprintf("hangs-%d", i), fmt.Sprintf("%s/a/b:v%d", listener.Addr(), i)))).To(Succeed())
		}
		good := newPackage(w.Namespace(t), "shop", push(t, r, "web:v1", web()), `{"color":"green"}`)
		g.Expect(w.Client.Create(t.Context(), good)).To(Succeed())
		// 30 packages that wait 60 s each, with 5 workers, would take 6 minutes: longer than this waits.
		w.Eventually(t, good, available(good, 1))
	})
	t.Run("When the image can't be pulled it should say so first", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		p := newPackage(w.Namespace(t), "shop", r.Host+"/missing:v1")
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, has(p, "Unpacked", "False", "ImagePullBackOff", ""))
		g.Expect(p.Status.Conditions[0].Type).To(Equal("Unpacked"))
		g.Expect(p.Status.Conditions[0].Message).To(ContainSubstring("NAME_UNKNOWN"))
	})
	t.Run("When it is paused it should keep what is there, and say so", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		p := newPackage(w.Namespace(t), "shop", push(t, r, "web:v1", web()))
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, available(p, 1))
		change(t, w, p, map[string]any{"paused": true, "config": map[string]any{"color": "blue"}})
		w.Eventually(t, p, has(p, "Paused", "True", "Paused", ""))
		hash := p.Status.UnpackedHash
		change(t, w, p, map[string]any{"paused": false})
		w.Eventually(t, p, available(p, 2))
		g.Expect(p.Status.UnpackedHash).NotTo(Equal(hash))
	})
	t.Run("When it is a ClusterPackage it should do the same", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		ns := w.Namespace(t)
		p := newPackage("", ns, push(t, r, "web:v1", web()))
		g.Expect(w.Client.Create(t.Context(), (*v1alpha1.ClusterPackage)(p))).To(Succeed())
		w.Eventually(t, (*v1alpha1.ClusterPackage)(p), available(p, 1))
		cm := &corev1.ConfigMap{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: ns + "-one"}, cm)).To(Succeed())
		g.Expect(w.Client.Delete(t.Context(), (*v1alpha1.ClusterPackage)(p))).To(Succeed())
		w.Gone(t, cm)
	})
	t.Run("When each object has a slice it should refer to them, and remove those that are not used", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		p := newPackage(w.Namespace(t), "shop", push(t, r, "web:v1", web()))
		p.Annotations = map[string]string{v1alpha1.ChunkingStrategyAnnotation: "EachObject"}
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, available(p, 1))
		od := &v1alpha1.ObjectDeployment{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), od)).To(Succeed())
		g.Expect(od.Spec.Template.Spec.Phases[0].Objects).To(BeEmpty())
		g.Expect(od.Spec.Template.Spec.Phases[0].Slices).To(HaveLen(1))
	})
	t.Run("When its objects are to be cut in a way that there is not it should say so", func(t *testing.T) {
		t.Parallel()
		g, w, r := NewWithT(t), start(t), NewRegistry(t)
		p := newPackage(w.Namespace(t), "shop", push(t, r, "web:v1", web()))
		p.Annotations = map[string]string{v1alpha1.ChunkingStrategyAnnotation: "Halves"}
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, has(p, "Invalid", "True", "LoadError",
			`annotation packages.package-operator.run/chunking-strategy: unknown strategy "Halves", must be NoOp, EachObject or BinpackNextFit`))
	})
}

func TestRefusals(t *testing.T) {
	object := func(kind, metadata string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: " + strings.Replace(metadata, "{", `{annotations: {package-operator.run/phase: more}, `, 1) + "\n"
	}
	for name, tc := range map[string]struct {
		files   load.Files
		reason  string
		message string
	}{
		"When an object is in another namespace it should be refused": {
			web("b.yaml", object("ConfigMap", "{name: x, namespace: kube-system}")), "LoadError",
			`Object not allowed in b.yaml idx 0: it is in namespace "kube-system", and the Package in`,
		},
		"When an object is cluster-scoped it should be refused": {
			web("b.yaml", object("Namespace", "{name: x}")), "LoadError", "Object not allowed in b.yaml idx 0: Namespace is cluster-scoped: use a ClusterPackage",
		},
		"When an object has an owner it should be refused": {
			web("b.yaml", object("ConfigMap", "{name: x, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: y, uid: z}]}")), "LoadError",
			"Object not allowed in b.yaml idx 0: metadata.ownerReferences must not be set: objects of a package belong to it",
		},
		"When there is no manifest it should be refused": {load.Files{"a.yaml": []byte("a: b")}, "LoadError", "PackageManifest not found"},
		"When a constraint doesn't hold it should be refused": {
			web("manifest.yaml", webManifest+"  constraints: [{platform: [OpenShift]}, {platformVersion: {name: Kubernetes, range: '>=9'}}]\n"), "ConstraintsFailed",
			"Constraints not met: OpenShift platform, Kubernetes v",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, w, r := NewWithT(t), start(t), NewRegistry(t)
			p := newPackage(w.Namespace(t), "shop", push(t, r, "web:v1", tc.files))
			g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
			w.Eventually(t, p, has(p, "Invalid", "True", tc.reason, ""))
			for _, c := range p.Status.Conditions {
				if c.Type == "Invalid" {
					g.Expect(c.Message).To(HavePrefix(tc.message))
				}
			}
			g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1alpha1.ObjectDeployment{})).NotTo(Succeed())
			list := &corev1.ConfigMapList{}
			g.Expect(w.Client.List(t.Context(), list, client.InNamespace(p.Namespace), client.MatchingLabels{v1alpha1.InstanceLabel: "shop"})).To(Succeed())
			g.Expect(list.Items).To(BeEmpty())
		})
	}
}
