package dump

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// secretText must be in no file of a dump.
const secretText = "c2VjcmV0LW9mLXRoZS11c2Vy"

// scene are objects of a hosted cluster that a dump is to have, with a secret in each that may hold one.
const scene = `
apiVersion: v1
kind: Secret
metadata: {name: demo-pull-secret, namespace: NS}
data: {.dockerconfigjson: ` + secretText + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kubeconfig, namespace: HCPNS}
data: {config: "token: ` + secretText + `"}
---
apiVersion: cluster.hypershift.openshift.io/v1beta2
kind: Machine
metadata: {name: private-machine, namespace: HCPNS}
spec:
  clusterName: demo
  bootstrap: {dataSecretName: user-data}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: LocalMachine, name: private-machine}
---
apiVersion: package-operator.run/v1alpha1
kind: ObjectSet
metadata: {name: addon-1, namespace: HCPNS}
spec:
  phases:
  - name: one
    objects:
    - object: {apiVersion: v1, kind: Secret, metadata: {name: of-addon}, stringData: {any: ` + secretText + `}}
---
apiVersion: package-operator.run/v1alpha1
kind: ClusterPackage
metadata: {name: fleet-wide-addon}
spec: {image: "registry.example.com/addon:1", config: {password: ` + secretText + `}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-the-package-operator, namespace: package-operator-system}
`

func TestCluster(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c := env.Client(t, runtime.NewScheme())
	for _, list := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){config.PrivateCAPICRDs, config.PackageOperatorCRDs} {
		crds, err := list()
		g.Expect(err).NotTo(HaveOccurred())
		for _, crd := range crds {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
			g.Expect(err).NotTo(HaveOccurred())
			u := &unstructured.Unstructured{Object: content}
			u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
			g.Expect(client.IgnoreAlreadyExists(c.Create(t.Context(), u))).To(Succeed())
		}
	}
	namespace := func(name string) {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if err := c.Create(t.Context(), ns); !apierrors.IsAlreadyExists(err) {
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	ns := env.Namespace(t)
	hcpns := ns + "-demo"
	namespace(hcpns)
	namespace("package-operator-system")
	hc := testenv.HostedCluster(ns, "demo")
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hc)
	g.Expect(err).NotTo(HaveOccurred())
	cluster := &unstructured.Unstructured{Object: content}
	cluster.SetAPIVersion("hypershift.openshift.io/v1beta1")
	cluster.SetKind("HostedCluster")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	for _, manifest := range strings.Split(strings.NewReplacer("HCPNS", hcpns, "NS", ns).Replace(scene), "---\n") {
		u := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(manifest), u)).To(Succeed())
		// A definition that was just created is served a moment later.
		g.Eventually(func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), u.DeepCopy())) }).WithTimeout(30*time.Second).Should(Succeed(), manifest)
	}

	dir := t.TempDir()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())
	o := NewOptions()
	o.Connect.Kubeconfig, o.Name, o.Namespace, o.AgentNamespace, o.ArtifactDir = kubeconfig, "demo", ns, "default", dir
	g.Expect(Cluster(t.Context(), o, io.Discard)).To(Succeed())

	all := ""
	g.Expect(fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".tar.gz") {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, path))
		all += path + "\n" + string(raw)
		return err
	})).To(Succeed())
	t.Run("When a hosted cluster is dumped it should have its parts, private machines and packages among them", func(t *testing.T) {
		g := NewWithT(t)
		for _, want := range []string{
			"namespaces/" + ns + "/hypershift.openshift.io/hostedclusters.yaml", "name: demo-pull-secret",
			"namespaces/" + hcpns + "/cluster.hypershift.openshift.io/machines.yaml", "name: private-machine",
			"namespaces/" + hcpns + "/package-operator.run/objectsets.yaml", "name: addon-1",
			"cluster-scoped/package-operator.run/clusterpackages.yaml", "name: fleet-wide-addon",
			"namespaces/package-operator-system/core/configmaps.yaml", "name: of-the-package-operator",
			"namespaces/default/core/services.yaml",
			archiveName,
		} {
			if want == archiveName {
				g.Expect(filepath.Join(dir, want)).To(BeAnExistingFile())
				continue
			}
			g.Expect(strings.Contains(all, want)).To(BeTrue(), want)
		}
	})
	t.Run("When there is no such hosted cluster it should write what there is, and say so by its exit code", func(t *testing.T) {
		g := NewWithT(t)
		o := o
		o.Name, o.ArtifactDir = "misspelt", t.TempDir()
		err := Cluster(t.Context(), o, io.Discard)
		g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
		g.Expect(err).To(MatchError(And(ContainSubstring("HostedCluster "+ns+"/misspelt doesn't exist"), ContainSubstring("--namespace"))))
		g.Expect(filepath.Join(o.ArtifactDir, archiveName)).To(BeAnExistingFile())
	})
	t.Run("When the time is over it should write what it has read, and say so by its exit code", func(t *testing.T) {
		g := NewWithT(t)
		o := o
		o.Timeout, o.ArtifactDir = time.Nanosecond, t.TempDir()
		err := Cluster(t.Context(), o, io.Discard)
		g.Expect(exit.Code(err)).To(Equal(exit.TimedOut), "%v", err)
		g.Expect(err).To(MatchError(ContainSubstring("--timeout 1ns")))
		g.Expect(filepath.Join(o.ArtifactDir, archiveName)).To(BeAnExistingFile())
		g.Expect(filepath.Join(o.ArtifactDir, problemsFile)).To(BeAnExistingFile())
	})
	t.Run("When there are secrets in it they should not be written", func(t *testing.T) {
		NewWithT(t).Expect(strings.Contains(all, secretText)).To(BeFalse())
	})
}
