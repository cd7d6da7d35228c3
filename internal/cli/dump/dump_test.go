package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestSafeName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		name := safeName(rapid.String().Draw(t, "text"))
		g.Expect(filepath.Base(name)).To(Equal(name), "one component")
		g.Expect(name).NotTo(BeElementOf("", ".", ".."))
		g.Expect(len(name)).To(BeNumerically("<=", 200))
	})
	NewWithT(t).Expect(safeName("../../etc/passwd")).To(Equal(".._.._etc_passwd"))
}

func TestListable(t *testing.T) {
	g := NewWithT(t)
	kinds := listable([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: []string{"get", "list"}},
			{Name: "pods/log", Kind: "Pod", Namespaced: true, Verbs: []string{"get", "list"}},
			{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: []string{"create"}},
			{Name: "events", Kind: "Event", Namespaced: true, Verbs: []string{"list"}},
		}},
		{GroupVersion: "events.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "events", Kind: "Event", Namespaced: true, Verbs: []string{"list"}}}},
		{GroupVersion: "a/b/c"},
	})
	var names []string
	for _, k := range kinds {
		names = append(names, k.Group+"/"+k.resource)
	}
	g.Expect(names).To(Equal([]string{"/events", "/pods"}))
}

func TestArchive(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	d := &dumper{dir: dir}
	d.write([]byte("b"), "namespaces", "b", "pods.yaml")
	d.write([]byte("a"), "namespaces", "../a", "pods.yaml")
	g.Expect(d.problems).To(BeEmpty())
	g.Expect(os.WriteFile(filepath.Join(dir, "id_ed25519"), []byte("a key of whoever runs it"), 0o600)).To(Succeed())
	g.Expect(os.Symlink("/etc/passwd", filepath.Join(dir, "link"))).To(Succeed())
	archive := filepath.Join(dir, archiveName)
	g.Expect(writeArchive(dir, archive, d.written)).To(Succeed())
	g.Expect(writeArchive(dir, archive, d.written)).To(Succeed(), "again, over the first one")

	file, err := os.Open(archive)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	g.Expect(err).NotTo(HaveOccurred())
	content := map[string]string{}
	for packed := tar.NewReader(unzipped); ; {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		raw, err := io.ReadAll(packed)
		g.Expect(err).NotTo(HaveOccurred())
		content[header.Name] = string(raw)
	}
	g.Expect(content).To(Equal(map[string]string{"namespaces/b/pods.yaml": "b", "namespaces/.._a/pods.yaml": "a"}))
}
