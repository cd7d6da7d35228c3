package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
)

func TestTwins(t *testing.T) {
	g := NewWithT(t)
	private, err := config.PrivateCAPICRDs()
	g.Expect(err).NotTo(HaveOccurred())
	twins := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range private {
		twins[crd.Name] = crd
	}
	standard, err := config.CAPICRDs()
	g.Expect(err).NotTo(HaveOccurred())
	all, err := config.CRDs(config.DefaultSet)
	g.Expect(err).NotTo(HaveOccurred())
	for _, crd := range all {
		if translate.InDomain(crd.Spec.Group) {
			standard = append(standard, crd)
		}
	}
	g.Expect(private).To(HaveLen(len(standard)))

	t.Run("When a twin is seen through the proxy it should be the original, to the last field", func(t *testing.T) {
		for _, crd := range standard {
			g := NewWithT(t)
			twin := twins[translate.CRDName(crd.Name)]
			g.Expect(twin).NotTo(BeNil(), crd.Name)
			raw, err := json.Marshal(twin)
			g.Expect(err).NotTo(HaveOccurred())
			r, err := translate.Parse("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+crd.Name, "")
			g.Expect(err).NotTo(HaveOccurred())
			seen, err := translate.Bytes(r.Answer(true), nil, raw)
			g.Expect(err).NotTo(HaveOccurred())
			want, err := json.Marshal(crd)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(seen)).To(MatchJSON(want))
		}
	})
	t.Run("When a platform administrator asks by short names or category it should show no twin", func(t *testing.T) {
		g := NewWithT(t)
		taken := map[string]bool{"cluster-api": true}
		for _, crd := range standard {
			for _, n := range crd.Spec.Names.ShortNames {
				taken[n] = true
			}
		}
		for _, crd := range private {
			for _, n := range append(crd.Spec.Names.ShortNames, crd.Spec.Names.Categories...) {
				g.Expect(taken).NotTo(HaveKey(n), crd.Name)
			}
			g.Expect(crd.Labels).To(HaveKey("cluster.x-k8s.io/v1beta2"), crd.Name)
			g.Expect(len("infrastructure." + translate.Private)).To(BeNumerically("<=", 253))
		}
	})
}

func TestGenerate(t *testing.T) {
	t.Run("When generated again it should give the same bytes as are committed", func(t *testing.T) {
		g := NewWithT(t)
		root := filepath.Join("..", "..", "..", "config")
		dir := t.TempDir()
		sources, err := filepath.Glob(filepath.Join(root, "capi", "*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		local, err := filepath.Glob(filepath.Join(root, "crd", "default", "infrastructure.cluster.x-k8s.io_*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, source := range append(sources, local...) {
			g.Expect(generate(dir, source)).To(Succeed())
		}
		made, err := os.ReadDir(dir)
		g.Expect(err).NotTo(HaveOccurred())
		committed, err := os.ReadDir(filepath.Join(root, "capiprivate"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made).To(HaveLen(len(committed)))
		for _, f := range made {
			got, err := os.ReadFile(filepath.Join(dir, f.Name()))
			g.Expect(err).NotTo(HaveOccurred())
			want, err := os.ReadFile(filepath.Join(root, "capiprivate", f.Name()))
			g.Expect(err).NotTo(HaveOccurred(), "run make generate")
			g.Expect(string(got) == string(want)).To(BeTrue(), "%s: run make generate", f.Name())
		}
	})
	const crd = `{"metadata":{"name":"x.cluster.x-k8s.io"},"spec":{"group":"cluster.x-k8s.io","names":{"plural":"x"},"versions":[{"schema":{"x-kubernetes-validations":[{"rule":"RULE","message":"cluster.x-k8s.io"}]}}]}}`
	t.Run("When a schema's rule spells out a group it should refuse", func(t *testing.T) {
		_, _, err := twin([]byte(strings.Replace(crd, "RULE", "self == 'cluster.x-k8s.io'", 1)))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("x-kubernetes-validations[0].rule")))
		_, _, err = twin([]byte(crd))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When a group is none of Cluster API's, or a short name is new, it should refuse", func(t *testing.T) {
		_, _, err := twin([]byte(strings.Replace(crd, `"group":"cluster`, `"group":"mycluster`, 1)))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("none of Cluster API's")))
		_, _, err = twin([]byte(strings.Replace(crd, `"plural":"x"`, `"plural":"x","shortNames":["new"]`, 1)))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`doesn't know "new"`)))
	})
}
