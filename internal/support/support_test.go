package support_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

func TestLeaves(t *testing.T) {
	for _, table := range support.Tables() {
		leaves := supporttest.Leaves(t, table.Kind)
		t.Run("When "+table.Kind+" has a field it should be in the table", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(len(leaves)).To(BeNumerically(">", 100))
			for _, leaf := range leaves {
				e, ok := table.Lookup(leaf.Path, "")
				g.Expect(ok).To(BeTrue(), "%s has no entry: say in internal/support whether it is heeded", leaf.Path)
				for _, v := range leaf.Enum {
					e, _ := table.Lookup(leaf.Path, v)
					g.Expect(e.Verdict).NotTo(BeEmpty(), "%s=%s", leaf.Path, v)
				}
				if e.Verdict != support.Heeded && !e.Quiet && leaf.Default != "" {
					g.Expect(leaf.Default).To(Or(Equal(e.Default), Satisfy(func(string) bool { return covered(table, leaf) })), "%s: tell nobody of the default that the definition writes", leaf.Path)
				}
			}
		})
		t.Run("When the table of "+table.Kind+" has an entry it should be about something, and say what", func(t *testing.T) {
			g := NewWithT(t)
			seen := map[string]bool{}
			for _, e := range table.Entries {
				g.Expect(seen[e.Path]).To(BeFalse(), "%s is there twice", e.Path)
				seen[e.Path] = true
				path, value, picked := strings.Cut(supporttest.Generic(e.Path), "=")
				i := slices.IndexFunc(leaves, func(l supporttest.Leaf) bool { return supporttest.Below(path, l.Path) })
				g.Expect(i).To(BeNumerically(">=", 0), "%s: no such field", e.Path)
				if picked && value != "" && len(leaves[i].Enum) > 0 {
					g.Expect(leaves[i].Enum).To(ContainElement(value), e.Path)
				}
				valid(g, e)
			}
		})
	}
}

// covered tells that a default is written only into an object that the user made, which is told of anyhow.
func covered(table *support.Table, leaf supporttest.Leaf) bool {
	e, _ := table.Lookup(leaf.Path, "")
	return strings.Count(leaf.Path, ".") > strings.Count(e.Path, ".")+1
}

// valid holds for every entry.
func valid(g Gomega, e support.Entry) {
	if e.Verdict == support.Heeded && (e.None == "" || e.None == support.Heeded) {
		g.Expect(e.By).NotTo(BeEmpty(), "%s: who heeds it?", e.Path)
	} else if e.Verdict != support.Heeded || e.None != "" {
		g.Expect(e.Text).NotTo(BeEmpty(), "%s: say why, and what to do", e.Path)
		g.Expect(e.Text).NotTo(HaveSuffix("."), e.Path)
	}
	if name, isTest := strings.CutPrefix(e.By, "test "); isTest {
		g.Expect(testExists(name)).To(BeTrue(), "%s: there is no test %s", e.Path, name)
	}
}

// testExists looks for a test such as internal/nodepool.TestGates.
func testExists(name string) bool {
	dir, function := name[:strings.LastIndex(name, ".")], name[strings.LastIndex(name, ".")+1:]
	files, _ := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(raw), "\nfunc "+function+"(t *testing.T)") {
			return true
		}
	}
	return false
}

func TestAnnotationConstants(t *testing.T) {
	t.Run("When the API has a key it should be in the table", func(t *testing.T) {
		g := NewWithT(t)
		keys := constants(t)
		g.Expect(len(keys)).To(BeNumerically(">", 120))
		for name, value := range keys {
			e, ok := support.Annotation(value)
			if !ok {
				e, ok = support.Annotation(value + "x") // a prefix
			}
			g.Expect(ok).To(BeTrue(), "%s (%s) has no entry: say in internal/support whether it is heeded", value, name)
			switch e.Verdict {
			case support.Heeded:
				g.Expect(readers(t, name, value)).NotTo(BeEmpty(), "%s (%s) is said to be heeded, and nothing reads it", value, name)
			case support.NotHeeded:
				g.Expect(e.Text).NotTo(BeEmpty(), value)
				if name != "CleanupCloudResourcesAnnotation" { // passed on to the HostedControlPlane of a cluster that goes, too
					g.Expect(readers(t, name, value)).To(BeEmpty(), "%s (%s) is said not to be heeded, and is read", value, name)
				}
			}
		}
	})
	t.Run("When the table has an entry it should be there once", func(t *testing.T) {
		g := NewWithT(t)
		seen := map[string]bool{}
		for _, e := range support.Annotations() {
			g.Expect(seen[e.Path]).To(BeFalse(), "%s is there twice", e.Path)
			seen[e.Path] = true
		}
	})
}

func TestAnnotationsOfPayloads(t *testing.T) {
	t.Run("When only payloads heed an annotation something of theirs should read it, and of no other", func(t *testing.T) {
		g := NewWithT(t)
		text := &strings.Builder{}
		for _, dir := range []string{"controlplane/openshift", "configoperator", "contract/payload", "nodepool"} {
			g.Expect(filepath.WalkDir("../"+dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/karpenter/") { // which is only shown
					return err
				}
				raw, err := os.ReadFile(path)
				text.Write(raw)
				return err
			})).To(Succeed())
		}
		for name, value := range constants(t) {
			e, ok := support.Annotation(value)
			if !ok {
				e, _ = support.Annotation(value + "x")
			}
			if e.Verdict != support.NotHeeded {
				continue
			}
			// Of these two the hypershift-operator makes what payloads heed.
			read := regexp.MustCompile(`hyperv1\.`+name+`\b`).MatchString(text.String()) || name == "CleanupCloudResourcesAnnotation" || name == "EnableMetricsForwarding"
			g.Expect(e.Payload == support.Heeded).To(Equal(read), "%s (%s)", value, name)
		}
	})
}

// sources are the programs' files: without tests, tools for users, which write annotations, and the list of those that are only copied.
var sources = sync.OnceValue(func() map[string]string {
	files := map[string]string{}
	add := func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, skip := range []string{"_test.go", "internal/hostedcluster/desired/hcp.go", "internal/nodepool/payload.go"} { // the last one is for OpenShift payloads alone, too
			if strings.HasSuffix(path, skip) {
				return nil
			}
		}
		if d.IsDir() && slices.Contains([]string{"cli", "support", "testenv"}, d.Name()) && filepath.Dir(path) == "../../internal" {
			return filepath.SkipDir
		}
		// The table is about Kubernetes releases, and these are for OpenShift payloads alone.
		if slices.Contains([]string{"../../internal/controlplane/openshift", "../../internal/configoperator/openshift", "../../internal/contract/payload"}, path) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[path] = string(raw)
		}
		return nil
	}
	_ = filepath.WalkDir("../../internal", add)
	_ = filepath.WalkDir("../../config", add) // admission policies
	return files
})

// readers are the files that mention a constant by its name or its value.
func readers(t *testing.T, name, value string) []string {
	t.Helper()
	var found []string
	word := regexp.MustCompile(`\b` + name + `\b`)
	for path, text := range sources() {
		if strings.Contains(text, `"`+strings.TrimSuffix(value, "/")) || strings.Contains(text, name) && word.MatchString(text) {
			found = append(found, path)
		}
	}
	return found
}

// constants are the keys in the files keys_*.go of the API: values with a slash, or prefixes.
func constants(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	files, err := filepath.Glob("../../api/hypershift/v1beta1/keys_*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files with keys: %v", err)
	}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if i >= len(spec.Values) {
					continue
				}
				literal, ok := spec.Values[i].(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: %s is no plain text", f, name.Name)
					continue
				}
				if value, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(value, ".") {
					found[name.Name] = value
				}
			}
			return true
		})
	}
	return found
}

// literal is a key of ours as programs write it where the API has no constant.
var literal = regexp.MustCompile(`"(hypershift\.openshift\.io/[A-Za-z][A-Za-z0-9-]+)"`)

func TestKeysOfPrograms(t *testing.T) {
	t.Run("When a program has a key of its own it should be in the table, or its users would be told that it means nothing", func(t *testing.T) {
		for path, text := range sources() {
			for _, found := range literal.FindAllStringSubmatch(text, -1) {
				if strings.HasSuffix(found[1], "/v1beta1") {
					continue
				}
				if _, ok := support.Annotation(found[1]); !ok {
					t.Errorf("%s: %s has no entry in internal/support", path, found[1])
				}
			}
		}
	})
}

func TestKinds(t *testing.T) {
	t.Run("When a kind is served it should be in the table, and what is in the table served", func(t *testing.T) {
		g := NewWithT(t)
		var served, known []string
		crds, err := config.CRDs(config.TechPreviewSet)
		g.Expect(err).NotTo(HaveOccurred())
		more, err := config.PackageOperatorCRDs()
		g.Expect(err).NotTo(HaveOccurred())
		for _, crd := range append(crds, more...) {
			served = append(served, crd.Spec.Group+"/"+crd.Spec.Names.Kind)
		}
		for _, k := range support.Kinds {
			known = append(known, k.Group+"/"+k.Kind)
			if support.Of(k.Kind) == nil {
				g.Expect(k.Text).NotTo(BeEmpty(), k.Kind)
			}
		}
		g.Expect(known).To(ConsistOf(served))
	})
}

func TestFindings(t *testing.T) {
	table := support.Of("HostedCluster")
	for name, tc := range map[string]struct {
		spec map[string]any
		want []string
	}{
		"When nothing is set it should find nothing":                            {spec: map[string]any{}},
		"When a field is heeded it should find nothing":                         {spec: map[string]any{"issuerURL": "https://a"}},
		"When a field has its default it should find nothing":                   {spec: map[string]any{"olmCatalogPlacement": "management", "fips": false}},
		"When it has another value it should name the field":                    {spec: map[string]any{"olmCatalogPlacement": "guest"}, want: []string{"spec.olmCatalogPlacement"}},
		"When several fields of a group are set it should name the group once":  {spec: map[string]any{"dns": map[string]any{"privateZoneID": "a", "publicZoneID": "b"}}, want: []string{"spec.dns"}},
		"When a group is empty it should find nothing":                          {spec: map[string]any{"capabilities": map[string]any{"enabled": []any{}}}},
		"When a value is not heeded it should name it":                          {spec: map[string]any{"networking": map[string]any{"networkType": "Calico"}}, want: []string{"spec.networking.networkType Calico"}},
		"When another value is heeded it should find nothing":                   {spec: map[string]any{"networking": map[string]any{"networkType": "Other"}}},
		"When metrics are not to be forwarded it should find nothing":           {spec: map[string]any{"monitoring": map[string]any{"metricsForwarding": map[string]any{"mode": "None"}}}},
		"When the base domain is the commands' own it should find nothing":      {spec: map[string]any{"dns": map[string]any{"baseDomain": "example.com"}}},
		"When the base domain is the user's it should name it":                  {spec: map[string]any{"dns": map[string]any{"baseDomain": "a"}}, want: []string{"spec.dns.baseDomain"}},
		"When commands list a service that nobody publishes it should be quiet": {spec: services("APIServer", "LoadBalancer", "OIDC", "NodePort")},
		"When a type can't work for one service it should be named for that":    {spec: services("APIServer", "LoadBalancer", "Ignition", "LoadBalancer"), want: []string{"spec.services[1].servicePublishingStrategy.type LoadBalancer"}},
		"When a value says how nobody can be reached it should be named":        {spec: services("Konnectivity", "S3"), want: []string{"spec.services[0].servicePublishingStrategy.type S3"}},
		"When callers are kept out by address without a load balancer it should be named": {spec: map[string]any{
			"networking": map[string]any{"apiServer": map[string]any{"allowedCIDRBlocks": []any{"10.0.0.0/8"}}},
			"services":   services("APIServer", "NodePort")["services"]}, want: []string{"spec.networking.apiServer.allowedCIDRBlocks"}},
		"When a load balancer keeps them out it should find nothing": {spec: map[string]any{
			"networking": map[string]any{"apiServer": map[string]any{"allowedCIDRBlocks": []any{"10.0.0.0/8"}}},
			"services":   services("APIServer", "LoadBalancer")["services"]}},
		"When a service is one that tools always name it should find nothing":   {spec: services("OAuthServer", "Route")},
		"When a cloud is configured it should be named, and not all its fields": {spec: map[string]any{"platform": map[string]any{"type": "Moon", "moon": map[string]any{"region": "x", "vpc": "y"}}}, want: []string{"spec.platform", "spec.platform.type"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range table.Findings(tc.spec, "None") {
				got = append(got, f.Field)
			}
			NewWithT(t).Expect(got).To(ConsistOf(tc.want))
		})
	}
	t.Run("When a platform heeds less it should find that", func(t *testing.T) {
		g := NewWithT(t)
		spec := map[string]any{"replicas": 2, "management": map[string]any{"upgradeType": "Replace"}}
		pools := support.Of("NodePool")
		g.Expect(pools.Findings(spec, "Local")).To(BeEmpty())
		g.Expect(pools.Findings(spec, "None")).To(ConsistOf(HaveField("Field", "spec.replicas")))
		g.Expect(pools.Findings(map[string]any{"replicas": 0}, "None")).To(BeEmpty())
	})
}

func services(pairs ...string) map[string]any {
	var list []any
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, map[string]any{"service": pairs[i], "servicePublishingStrategy": map[string]any{"type": pairs[i+1]}})
	}
	return map[string]any{"services": list}
}

func TestAnnotationFindings(t *testing.T) {
	g := NewWithT(t)
	annotations := map[string]string{
		"hypershift.openshift.io/portieris-image": "x", "hypershift.openshift.io/restart-date": "x", "hypershift.openshift.io/restart-dtae": "x",
		"example.com/mine": "x", "resource-request-override.hypershift.openshift.io/etcd.etcd": "cpu=1", "idpoverrides.hypershift.openshift.io/github": "x",
	}
	found := support.AnnotationFindings(annotations, false)
	g.Expect(found).To(HaveLen(3))
	g.Expect(found[0].Field).To(Equal("metadata.annotations[hypershift.openshift.io/portieris-image]"))
	g.Expect(found[1].String()).To(Equal("metadata.annotations[hypershift.openshift.io/restart-dtae]: no annotation has this name: correct it, or remove it"))
	g.Expect(found[2].Field).To(ContainSubstring("idpoverrides"))

	found = support.AnnotationFindings(annotations, true)
	g.Expect(found).To(HaveLen(1), "components of payloads heed the others")
	g.Expect(found[0].Field).To(ContainSubstring("restart-dtae"))
}

func TestAnnotationsThatNeedASwitch(t *testing.T) {
	annotations := map[string]string{"hypershift.openshift.io/cluster-size-override": "large", "hypershift.openshift.io/resource-based-cp-auto-scaling": "true", "hypershift.openshift.io/restart-date": "x"}
	t.Run("When the installation lacks what annotations need it should name them, and what they need", func(t *testing.T) {
		g := NewWithT(t)
		found := support.AnnotationFindings(annotations, false, support.SizeTagging)
		g.Expect(found).To(HaveLen(2))
		g.Expect(found[0].String()).To(And(ContainSubstring("cluster-size-override"), ContainSubstring("--enable-size-tagging")))
		g.Expect(support.AnnotationFindings(annotations, true, support.SizeTagging)).To(HaveLen(2), "of payloads, too")
	})
	t.Run("When the installation has it it should tell nothing", func(t *testing.T) {
		NewWithT(t).Expect(support.AnnotationFindings(annotations, false)).To(BeEmpty())
	})
}

func TestKindsThatNeedASwitch(t *testing.T) {
	for _, k := range support.Kinds {
		switch {
		case k.Verdict == support.NotHeeded:
			t.Run("When nobody acts on "+k.Kind+" it should always be told", func(t *testing.T) { NewWithT(t).Expect(k.Warning()).To(Equal(k.Text)) })
		case k.Needs != "":
			t.Run("When an installation lacks what "+k.Kind+" needs it should be told how to get it", func(t *testing.T) {
				g := NewWithT(t)
				g.Expect(k.Warning(k.Needs)).To(ContainSubstring("hypershift install " + string(k.Needs)))
				g.Expect(k.Warning()).To(BeEmpty())
			})
		}
	}
}

func TestMessage(t *testing.T) {
	g := NewWithT(t)
	found := slices.Repeat([]support.Finding{{Field: "spec.x", Entry: support.Entry{Text: "y"}}}, 33)
	g.Expect(support.Message(found[:2])).To(Equal("spec.x: y; spec.x: y"))
	g.Expect(support.Message(found)).To(HaveSuffix("; and 3 more"))
}
