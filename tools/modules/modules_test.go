package modules

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const root = "../.."

// apart are modules with versions of their own, with the reason.
var apart = map[string]string{
	"capi":             "Cluster API's own programs, with the libraries that their authors tested",
	"capa":             "the provider for AWS, with the libraries that its authors tested",
	"coredns":          "CoreDNS, with the libraries that its authors tested",
	"karpenter":        "Karpenter's core is written for an older controller-runtime",
	"alerts":           "Prometheus, with the libraries that its authors tested",
	"tools/gitops":     "Argo CD's and Flux's health checks need older libraries",
	"tools/s3server":   "an S3 server for tests: it has nothing in common with the others",
	"tools/versitygw":  "an S3 server for tests: it has nothing in common with the others",
	"tools/typescript": "TypeScript's compiler: it has nothing in common with the others",
}

// asTested decide what a Kubernetes API does with an object: how it is merged, patched, decoded and validated. Another version may mend a defect that management
// clusters have, and that our tests have to meet.
var asTested = []string{
	"cel.dev/expr", "github.com/google/cel-go", "gopkg.in/evanphx/json-patch.v4", "k8s.io/kube-openapi", "sigs.k8s.io/json", "sigs.k8s.io/structured-merge-diff/v6", "sigs.k8s.io/yaml",
}

// modules are the go.mod files of the repository, by folder.
func modules(t *testing.T) map[string]*modfile.File {
	t.Helper()
	all := map[string]*modfile.File{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && path != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || e.Name() == "bin" || e.Name() == "testdata" || e.Name() == "dist") {
			return filepath.SkipDir
		}
		if e.IsDir() || e.Name() != "go.mod" {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := modfile.Parse(path, raw, nil)
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		all[filepath.ToSlash(folder)] = file
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// versions are what a go.mod file requires, by path.
func versions(file *modfile.File) map[string]string {
	out := map[string]string{}
	for _, r := range file.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	return out
}

func TestModulesShareVersions(t *testing.T) {
	all := modules(t)
	main, kubernetes := versions(all["."]), versions(all["kubernetes"])
	t.Run("When a module has a library that the main module has it should have it in no older version", func(t *testing.T) {
		own := map[string]bool{}
		for _, file := range all {
			own[file.Module.Mod.Path] = true
		}
		compared := 0
		for _, folder := range slices.Sorted(maps.Keys(all)) {
			if folder == "." || apart[folder] != "" {
				continue
			}
			for _, r := range all[folder].Require {
				ours, both := main[r.Mod.Path]
				if !both || own[r.Mod.Path] {
					continue
				}
				compared++
				if semver.Compare(r.Mod.Version, ours) < 0 {
					t.Errorf("%s/go.mod has %s %s, and the main module has %s: both are compiled. Run: cd %s && go get %s@%s && go mod tidy", folder, r.Mod.Path, r.Mod.Version, ours, folder, r.Mod.Path, ours)
				}
			}
		}
		if compared < 300 {
			t.Errorf("only %d versions were compared: where are the go.mod files?", compared)
		}
	})
	t.Run("When what hosted clusters run shares libraries with our programs both should have them in the same version", func(t *testing.T) {
		for _, r := range all["."].Require {
			theirs, both := kubernetes[r.Mod.Path]
			if both && theirs != r.Mod.Version {
				t.Errorf("the main module has %s %s, and kubernetes/go.mod has %s: both are compiled. Run: go get %s@%s && go mod tidy", r.Mod.Path, r.Mod.Version, theirs, r.Mod.Path, theirs)
			}
		}
	})
	t.Run("When a library decides what a Kubernetes API does it should be the one that the release was tested with", func(t *testing.T) {
		list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.GoMod}}", "k8s.io/kubernetes")
		list.Dir = filepath.Join(root, "kubernetes")
		path, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(strings.TrimSpace(string(path)))
		if err != nil {
			t.Fatal(err)
		}
		release, err := modfile.Parse("go.mod", raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		tested := versions(release)
		for _, path := range asTested {
			if tested[path] == "" || kubernetes[path] != tested[path] {
				t.Errorf("kubernetes/go.mod has %s %q, and the release was tested with %q. Run: cd kubernetes && go get %s@%s && go mod tidy", path, kubernetes[path], tested[path], path, tested[path])
			}
		}
	})
	t.Run("When a module is named as one with versions of its own it should be there", func(t *testing.T) {
		for folder := range apart {
			if all[folder] == nil {
				t.Errorf("%s has no go.mod any more: remove it from this test", folder)
			}
		}
	})
}
