package api_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/testenv"
)

const examples = "../../config/examples"

// tryExamples applies every manifest of a folder the way kubectl apply --dry-run=server --validate=strict does.
func tryExamples(t *testing.T, folder string) {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			for _, obj := range manifests(t, file) {
				if ns := obj.GetNamespace(); ns != "" {
					err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
					g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
				}
				err := c.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
				g.Expect(err).NotTo(HaveOccurred(), "%s %s", obj.GetKind(), obj.GetName())
			}
		})
	}
}

func manifests(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		obj := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.UnmarshalStrict(doc, obj)
		}
		if err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		all = append(all, obj)
	}
}

func TestExamples(t *testing.T) { tryExamples(t, examples) }

// TestUnknownFields asks what kubectl asks: strict validation refuses a field that the definition does not know, a warning is what
// others get, and the field is not stored.
func TestUnknownFields(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c := env.Client(t, runtime.NewScheme())
	obj := merge(t, parse(t, baseHostedCluster), `spec: {relaese: {image: x}, networking: {clusterNetworks: []}}`)
	obj.SetNamespace(env.Namespace(t))
	err := c.Create(t.Context(), obj.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	g.Expect(apierrors.IsBadRequest(err)).To(BeTrue(), "want BadRequest, got %v", err)
	g.Expect(err).To(MatchError(ContainSubstring(`unknown field "spec.networking.clusterNetworks", unknown field "spec.relaese"`)))
	g.Expect(c.Create(t.Context(), obj, client.DryRunAll)).To(Succeed())
	_, found, err := unstructured.NestedMap(obj.Object, "spec", "relaese")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeFalse(), "what is unknown is dropped")
}
