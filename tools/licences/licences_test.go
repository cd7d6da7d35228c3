package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEveryProgram(t *testing.T) {
	t.Run("When everything that we hand out is listed each module should have a licence that is known and allowed", func(t *testing.T) {
		all, err := programs(nil)
		if err != nil {
			t.Fatal(err)
		}
		modules, err := Collect(t.Context(), "../..", all...)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, m := range modules {
			paths = append(paths, m.Path)
			if len(m.Licences) == 0 || len(m.Texts) == 0 {
				t.Errorf("%s has no licence", m.Path)
			}
		}
		for _, want := range []string{"std", "k8s.io/api", "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "github.com/coredns/coredns", "github.com/flannel-io/flannel", "sigs.k8s.io/cluster-api",
			"sigs.k8s.io/karpenter", "preact", "@preact/signals"} {
			if !slices.Contains(paths, want) {
				t.Errorf("%s is not listed", want)
			}
		}
		var text, again, inventory bytes.Buffer
		if err := writeText(&text, modules); err != nil {
			t.Fatal(err)
		}
		for _, m := range modules {
			if !strings.Contains(text.String(), m.Path+" "+m.Version+": ") {
				t.Errorf("the text lacks %s", m.Path)
			}
		}
		created := time.Unix(1_700_000_000, 0)
		if err := writeSPDX(&inventory, "x", "1.0.0", created, modules); err != nil {
			t.Fatal(err)
		}
		if err := writeSPDX(&again, "x", "1.0.0", created, modules); err != nil || again.String() != inventory.String() {
			t.Errorf("a second inventory differs, or failed: %v", err)
		}
		var doc spdx
		if err := json.Unmarshal(inventory.Bytes(), &doc); err != nil || len(doc.Packages) != len(modules)+1 || doc.Creation.Created != "2023-11-14T22:13:20Z" {
			t.Errorf("the inventory has %d packages of %d modules, created %s: %v", len(doc.Packages), len(modules), doc.Creation.Created, err)
		}
		ids := map[string]bool{}
		for _, p := range doc.Packages {
			if ids[p.ID] {
				t.Errorf("two packages have the id %s", p.ID)
			}
			ids[p.ID] = true
		}
	})
}

// TestEveryLicenceIsPassedOn looks for what of others lies in the repository, and would be embedded without its licence.
func TestEveryLicenceIsPassedOn(t *testing.T) {
	const root = "../.."
	passed := map[string]bool{"LICENSE": true, "NOTICE": true}
	for _, e := range embeddings {
		for _, p := range e.parts {
			passed[p.licence] = true
		}
	}
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if e.IsDir() {
			if name == "test" || name == "bin" || name == "dist" || name != "." && strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "node_modules" {
				return fs.SkipDir // is not handed out
			}
			return nil
		}
		if passedOn.MatchString(e.Name()) && !other.MatchString(e.Name()) && !passed[name] {
			t.Errorf("%s is passed on with nothing: name what embeds it in embeddings", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("When a browser's library is listed it should be found where npm has it", func(t *testing.T) {
		modules, err := embeddings["hcp.internal/platform/internal/console/assets"].read(root)
		if err != nil || len(modules) != 2 {
			t.Fatal(modules, err)
		}
		m := modules[1]
		if got := m.url(); !strings.HasPrefix(got, "pkg:npm/%40preact/signals@") || !slices.Equal(m.Licences, []string{"MIT"}) || m.mark() != " (npm)" {
			t.Errorf("got %s, %v", got, m.Licences)
		}
	})
}

func TestJudge(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		texts []Text
		want  []string
		wrong string
	}{
		"When a licence is known it should say which":                           {[]Text{{"LICENSE", apache}}, []string{"Apache-2.0"}, ""},
		"When there is none it should say so":                                   {[]Text{{"NOTICE", []byte("Made by us.")}}, nil, "no licence is at its root"},
		"When a text is unknown it should name the file":                        {[]Text{{"LICENSE.txt", []byte("You may look at it on Tuesdays.")}}, nil, "LICENSE.txt is no licence that is known"},
		"When a known one holds for little of the text it should name the file": {[]Text{{"COPYING", append(slices.Clone(apache), bytes.Repeat([]byte("But not on Sundays. "), 2000)...)}}, nil, "COPYING is no licence that is known"},
		"When a second text is unknown it should fail":                          {[]Text{{"LICENSE", apache}, {"x/LICENSE", []byte("No.")}}, []string{"Apache-2.0"}, "x/LICENSE"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := judge(Module{Path: "example.test/m", Version: "v1.0.0", Texts: tc.texts})
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if (err == nil) != (tc.wrong == "") || (err != nil && !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("got error %v, want one with %q", err, tc.wrong)
			}
		})
	}
}

func TestRun(t *testing.T) {
	t.Run("When a file is named it should hold the list", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "a", "list")
		if err := run(t.Context(), []string{"-root", "../..", "-out", file, "pause"}, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(got), "std\t") || !strings.HasSuffix(string(got), "\tBSD-3-Clause\n") {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("When images hold packages of Debian the inventory should have each once, by version and architecture", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "archives")
		const names = "libc6_2.36-9+deb12u10_arm64.deb\nlibc6_2.36-9+deb12u10_amd64.deb\nlibc6_2.36-9+deb12u10_arm64.deb\nlibnetfilter-x1_1%3a2.0_arm64.deb\n"
		if err := os.WriteFile(file, []byte(names), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-root", "../..", "-format", "spdx", "-debian", file, "pause"}, &out); err != nil {
			t.Fatal(err)
		}
		var doc spdx
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range doc.Packages {
			if p.Supplier == "Organization: Debian" {
				got = append(got, p.ID+" "+p.Version+" "+p.Refs[0].Locator+" "+p.Declared+" "+p.Comments)
			}
		}
		const terms = " NOASSERTION in images at /usr/share/doc/"
		want := []string{
			"SPDXRef-libc6-2.36-9-deb12u10-amd64 2.36-9+deb12u10 pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64" + terms + "libc6/copyright",
			"SPDXRef-libc6-2.36-9-deb12u10-arm64 2.36-9+deb12u10 pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=arm64" + terms + "libc6/copyright",
			"SPDXRef-libnetfilter-x1-1-2.0-arm64 1:2.0 pkg:deb/debian/libnetfilter-x1@1%3A2.0?arch=arm64" + terms + "libnetfilter-x1/copyright",
		}
		if !slices.Equal(got, want) || len(doc.Relationships) != len(doc.Packages) {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := os.WriteFile(file, []byte("bash.deb"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readDebian(file); err == nil || !strings.Contains(err.Error(), `"bash.deb" is no archive's name`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("When what is asked for is unknown it should say what there is", func(t *testing.T) {
		if err := run(t.Context(), []string{"everything"}, nil); err == nil || !strings.Contains(err.Error(), "coredns") {
			t.Errorf("got %v", err)
		}
		t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
		if err := run(t.Context(), []string{"pause"}, nil); err == nil || !strings.Contains(err.Error(), "seconds since 1970") {
			t.Errorf("got %v", err)
		}
	})
}
