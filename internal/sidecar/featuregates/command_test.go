package featuregates

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestObject(t *testing.T) {
	file := func(t *testing.T, content string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "gate.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Run("When there is a FeatureGate it should become a ConfigMap that says its version", func(t *testing.T) {
		g := NewWithT(t)
		const text = "apiVersion: config.openshift.io/v1\nkind: FeatureGate\n"
		raw, err := options{file: file(t, text), namespace: "ns", name: "feature-gate", version: "4.22.0"}.object()
		g.Expect(err).NotTo(HaveOccurred())
		var cm struct {
			Metadata struct {
				Namespace, Name string
				Annotations     map[string]string
			}
			Data map[string]string
		}
		g.Expect(json.Unmarshal(raw, &cm)).To(Succeed())
		g.Expect(cm.Metadata.Namespace + "/" + cm.Metadata.Name).To(Equal("ns/feature-gate"))
		g.Expect(cm.Metadata.Annotations).To(Equal(map[string]string{"hypershift.openshift.io/payload-version": "4.22.0"}))
		g.Expect(cm.Data).To(Equal(map[string]string{"feature-gate.yaml": text}))
	})
	for name, tc := range map[string]struct {
		o    options
		says string
	}{
		"When the file is missing it should say so":              {options{file: "/nonexistent", namespace: "ns", name: "x"}, "reading the FeatureGate"},
		"When the file holds something else it should refuse it": {options{file: file(t, "kind: Pod"), namespace: "ns", name: "x"}, "holds no FeatureGate"},
		"When the file is too long it should refuse it":          {options{file: file(t, string(make([]byte, maxFile+1))), namespace: "ns", name: "x"}, "longer than"},
		"When no namespace is given it should ask for it":        {options{name: "x"}, "--namespace"},
		"When no name is given it should ask for it":             {options{namespace: "ns"}, "--name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.o.object()
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}
