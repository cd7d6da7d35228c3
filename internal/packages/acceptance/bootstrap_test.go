package acceptance

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/packagestest"
)

// own is a package of the operator, as far as a bootstrap looks at it.
func own(version string) load.Files {
	return load.Files{
		"manifest.yaml": []byte(`apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: package-operator}
spec:
  scopes: [Cluster]
  phases: [{name: crds}, {name: deploy}]
  availabilityProbes:
  - selector: {kind: {group: apiextensions.k8s.io, kind: CustomResourceDefinition}}
    probes: [{condition: {type: Established, status: "True"}}]
  - selector: {kind: {group: apps, kind: Deployment}}
    probes: [{condition: {type: Available, status: "True"}}, {fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .status.replicas}}]
  config:
    openAPIV3Schema: {type: object, properties: {namespace: {type: string}, imagePrefixOverrides: {type: string}}}
`),
		"crd.yaml": []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.bootstrap.example, annotations: {package-operator.run/phase: crds}}
spec:
  group: bootstrap.example
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`),
		"deployment.yaml.gotmpl": []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: package-operator-manager, namespace: {{ .config.namespace }}, annotations: {package-operator.run/phase: deploy}}
spec:
  replicas: 1
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {containers: [{name: manager, image: 'operator:` + version + `', args: ['{{ .config.imagePrefixOverrides }}']}]}
`),
	}
}

// TestSelfBootstrap installs the operator from a package of itself, again, and from a newer one.
func TestSelfBootstrap(t *testing.T) {
	w, r := newWorld(t), packagestest.NewRegistry(t)
	w.RunDeployments(t)
	t.Cleanup(func() { w.unstrap(t) })
	w.create(t,
		`{apiVersion: package-operator.run/v1alpha1, kind: ClusterObjectSet, metadata: {name: NAMESPACE-2}, spec: {lifecycleState: Paused, previous: [{name: NAMESPACE-1}, {name: NAMESPACE-0}]}}`,
		`{apiVersion: package-operator.run/v1alpha1, kind: ClusterObjectSet, metadata: {name: NAMESPACE-1}, spec: {lifecycleState: Paused}}`)
	w.push(t, r, "operator:v1", own("v1"))
	w.push(t, r, "operator:v2", own("v2"))
	run := func(t *testing.T, version string) {
		t.Helper()
		o := w.start(t, w.home, "--self-bootstrap", "operators.example/operator:"+version, "--self-bootstrap-config", w.named(`{"namespace":"NAMESPACE"}`),
			"-image-prefix-overrides", "operators.example="+r.Host)
		NewWithT(t).Eventually(o.ended, 2*patience).Should(Receive(BeNil()))
	}
	p := &v1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "package-operator"}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.home, Name: "package-operator-manager"}}
	see := func(g Gomega) []v1alpha1.ClusterObjectSet {
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)).To(Succeed())
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d)).To(Succeed())
		list := &v1alpha1.ClusterObjectSetList{}
		g.Expect(w.Client.List(t.Context(), list, client.MatchingLabels{v1alpha1.InstanceLabel: "package-operator"})).To(Succeed())
		return list.Items
	}
	t.Run("When nothing is there it should install the package, and end when it runs", func(t *testing.T) {
		g := NewWithT(t)
		run(t, "v1")
		g.Expect(see(g)).To(HaveLen(1))
		g.Expect(packagestest.HasCondition(p, &p.Status.Conditions, "Available", "True", "Available", "")()).To(Succeed())
		g.Expect(d.Spec.Template.Spec.Containers[0].Args).To(ConsistOf("operators.example=" + r.Host))
		crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Name: "widgets.bootstrap.example"}, crd)).To(Succeed())
		g.Expect(crd.Labels).To(HaveKeyWithValue(v1alpha1.CacheLabel, "True"))
		g.Expect(metav1.GetControllerOf(crd)).To(HaveField("Kind", "ClusterObjectSet"), "what was made first belongs to the package now")
	})
	t.Run("When revisions of old have no number they should have one", func(t *testing.T) {
		g := NewWithT(t)
		for name, number := range map[string]int64{w.home + "-1": 1, w.home + "-2": 2} {
			os := &v1alpha1.ClusterObjectSet{}
			g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Name: name}, os)).To(Succeed())
			g.Expect(os.Spec.Revision).To(Equal(number))
		}
	})
	t.Run("When it is there already it should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		version, deployment := p.ResourceVersion, d.ResourceVersion
		run(t, "v1")
		g.Expect(see(g)).To(HaveLen(1))
		g.Expect([]string{p.ResourceVersion, d.ResourceVersion}).To(Equal([]string{version, deployment}))
	})
	t.Run("When the image is another it should stop the operator before, and install this one", func(t *testing.T) {
		g := NewWithT(t)
		before := d.UID
		run(t, "v2")
		g.Expect(see(g)).To(HaveLen(2))
		g.Expect(d.UID).NotTo(Equal(before))
		g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("operator:v2"))
		g.Expect(p.Status.Revision).To(Equal(int64(2)))
		g.Expect(packagestest.HasCondition(p, &p.Status.Conditions, "Available", "True", "Available", "")()).To(Succeed())
	})
}

// unstrap removes what a bootstrap made, without an operator, so that the test can run once more.
func (w world) unstrap(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	g := NewWithT(t)
	list := &v1alpha1.ClusterObjectSetList{}
	g.Expect(w.Client.List(ctx, list)).To(Succeed())
	for i := range list.Items {
		os := &list.Items[i]
		g.Expect(client.IgnoreNotFound(w.Client.Delete(ctx, os))).To(Succeed())
	}
	none := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	for i := range list.Items {
		g.Expect(client.IgnoreNotFound(w.Client.Patch(ctx, &list.Items[i], none))).To(Succeed())
	}
	p := &v1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "package-operator"}}
	g.Expect(client.IgnoreNotFound(w.Client.Delete(ctx, p))).To(Succeed())
	g.Expect(client.IgnoreNotFound(w.Client.Patch(ctx, p, none))).To(Succeed())
	crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	crd.Name = "widgets.bootstrap.example"
	g.Expect(client.IgnoreNotFound(w.Client.Delete(ctx, crd))).To(Succeed())
	for _, obj := range []client.Object{p, crd, &v1alpha1.ClusterObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: "package-operator"}}} {
		g.Eventually(func() bool { return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)) }, patience).Should(BeTrue())
	}
}
