package kubectlpackage

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/packagestest"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// run runs a command and returns what it prints, and its error as main prints it.
func run(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := Command(Options{Now: func() time.Time { return noon }, Getenv: func(name string) string { return env[name] }, PollInterval: 10 * time.Millisecond})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		out.WriteString("Error: " + err.Error() + "\n")
	}
	return out.String()
}

const example = "../../../config/examples/packages/web"

// copyOf is a copy of a package's folder that tests may write to.
func copyOf(t *testing.T, source string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "web")
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOutputs(t *testing.T) {
	dir := copyOf(t, example)
	for name, args := range map[string][]string{
		"validate.txt":                    {"validate", dir},
		"validate-empty.txt":              {"validate", ""},
		"build.txt":                       {"build", dir},
		"build-no-source.txt":             {"build", ""},
		"build-no-args.txt":               {"build"},
		"build-no-tags.txt":               {"build", dir, "--push"},
		"build-bad-tag.txt":               {"build", dir, "--tag", "NOT A TAG", "--push"},
		"build-bad-label.txt":             {"build", dir, "--label", "a"},
		"build-bad-format.txt":            {"build", dir, "--output-format", "x"},
		"update-none.txt":                 {"update", dir},
		"tree.txt":                        {"tree", dir},
		"tree-testcase.txt":               {"tree", dir, "--config-testcase", "one-replica"},
		"tree-testcase-missing.txt":       {"tree", dir, "--config-testcase", "x"},
		"tree-cluster.txt":                {"tree", dir, "--cluster"},
		"tree-config-missing.txt":         {"tree", dir, "--config-path", "/does/not/exist"},
		"tree-exclusive.txt":              {"tree", dir, "--config-path", "a", "--config-testcase", "b"},
		"tree-component.txt":              {"tree", dir, "--component", "x"},
		"clustertree-one.txt":             {"clustertree", "package"},
		"clustertree-type.txt":            {"clustertree", "pod/x"},
		"clustertree-namespace.txt":       {"clustertree", "package/x"},
		"history-format.txt":              {"rollout", "history", "package/x", "-o", "x"},
		"history-args.txt":                {"rollout", "history", "package/x/y"},
		"pause-kind.txt":                  {"pause", "deployment/x"},
		"unpause-kind.txt":                {"unpause", "pod", "x"},
		"repository-init-args.txt":        {"repository", "init", "one"},
		"repository-add-args.txt":         {"repo", "add", "a", "b"},
		"repository-add-missing.txt":      {"repo", "add", "/does/not/exist", "localhost/a:b", "1.0.0"},
		"repository-remove-reference.txt": {"repo", "remove", "/does/not/exist", "NOT A REFERENCE"},
		"repository-pull-empty.txt":       {"repo", "pull", "file", ""},
		"repository-push-empty.txt":       {"repo", "push", "", "tag"},
		"repository-push-missing.txt":     {"repo", "push", "/does/not/exist", "localhost/aa:b"},
		"kickstart-none.txt":              {"kickstart", filepath.Join(dir, "new")},
		"kickstart-exists.txt":            {"kickstart", dir, "-f", "-"},
		"rollout-pause-message.txt":       {"rollout", "pause", "hostedclusterpackage/x", "-m", "why"},
		"help.txt":                        {"--help"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(run(t, nil, args...), filepath.Dir(dir), "DIR")
			clitest.Golden(t, name, got)
		})
	}
}

func TestPublish(t *testing.T) {
	g := NewWithT(t)
	r := packagestest.NewRegistry(t)
	dir, tag := copyOf(t, example), r.Host+"/web:v1"

	g.Expect(run(t, nil, "build", dir, "--tag", tag, "--push", "--output", filepath.Join(t.TempDir(), "web.tar"))).To(Equal("Package built successfully!"))
	first := run(t, nil, "build", dir, "--tag", tag, "--push", "--output-format", "digest")
	g.Expect(first).To(MatchRegexp(`^sha256:[0-9a-f]{64}\n$`))
	g.Expect(run(t, nil, "build", dir, "--tag", tag, "--push", "--output-format", "digest")).To(Equal(first), "the same source gives the same digest")
	g.Expect(run(t, nil, "validate", "--pull", tag)).To(Equal("Package validated successfully!"))

	file := filepath.Join(t.TempDir(), "packages.yaml")
	g.Expect(run(t, nil, "repo", "init", file, "mine")).To(BeEmpty())
	reference := r.Host + "/web@" + strings.TrimSpace(first)
	g.Expect(run(t, nil, "repo", "add", file, reference, "1.0.0", "1.1.0")).To(BeEmpty())
	g.Expect(run(t, nil, "repo", "add", file, reference, "1.0.0")).To(Equal("Error: add new entry: package \"web\" version \"v1.0.0\" already exists\n"))
	g.Expect(run(t, nil, "repo", "push", file, r.Host+"/packages:v1")).To(BeEmpty())
	pulled := filepath.Join(t.TempDir(), "pulled.yaml")
	g.Expect(run(t, nil, "repo", "pull", pulled, r.Host+"/packages:v1")).To(BeEmpty())
	a, errA := os.ReadFile(file)
	b, errB := os.ReadFile(pulled)
	g.Expect(errA).NotTo(HaveOccurred())
	g.Expect(errB).NotTo(HaveOccurred())
	g.Expect(string(b)).To(Equal(string(a)))
	// Where the registry is and what it holds differ from run to run, and with the example.
	stable := strings.NewReplacer(r.Host, "REGISTRY", strings.TrimPrefix(strings.TrimSpace(first), "sha256:"), "DIGEST")
	clitest.Golden(t, "repository.yaml", stable.Replace(string(a)))

	// A package that depends on it, and that uses an image by tag.
	user := filepath.Join(t.TempDir(), "user")
	write(t, user, "manifest.yaml", `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: user}
spec:
  scopes: [Namespaced]
  phases: [{name: a}]
  images: [{name: web, image: "`+tag+`"}]
  repositories: [{image: "`+r.Host+`/packages:v1"}]
  dependencies: [{image: {name: site, package: web.mine, range: ">=1.0.0"}}]
`)
	write(t, user, "a.yaml.gotmpl", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {package-operator.run/phase: a}}\ndata: {web: '{{ .images.web }}', site: '{{ .dependencies.site }}'}\n")
	g.Expect(run(t, nil, "validate", user)).To(ContainSubstring("Missing image in manifest.lock.yaml, but using PackageManifest.spec.images. Try running: kubectl package update"))
	g.Expect(run(t, nil, "update", user)).To(Equal("Package updated successfully!\n"))
	g.Expect(run(t, nil, "update", user)).To(Equal("Package is already up-to-date\n"))
	lock, err := os.ReadFile(filepath.Join(user, "manifest.lock.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	clitest.Golden(t, "lock.yaml", stable.Replace(string(lock)))
	g.Expect(string(lock)).To(And(ContainSubstring("2026-01-01T12:00:00Z"), ContainSubstring("version: v1.1.0"), ContainSubstring("digest: "+strings.TrimSpace(first))))
	g.Expect(run(t, nil, "build", user)).To(Equal("Package built successfully!"))

	g.Expect(run(t, nil, "repo", "remove", file, reference)).To(BeEmpty())
	g.Expect(run(t, nil, "repo", "remove", file, reference)).To(HavePrefix("Error: package "))
	write(t, user, "manifest.lock.yaml", strings.ReplaceAll(string(lock), strings.TrimSpace(first)[7:20], "0000000000000"))
	g.Expect(run(t, nil, "build", user)).To(HavePrefix("Error: building from source: image \"web\" of manifest.lock.yaml: looking up "))
}

// contents are the files of a folder, one after the other, without those of tests.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, ".test-fixtures/") {
			return err
		}
		fmt.Fprintf(&b, "==> %s <==\n%s", path, readText(t, dir, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFixtures(t *testing.T) {
	g := NewWithT(t)
	dir := copyOf(t, example)
	write(t, dir, "service.yaml.gotmpl", strings.Replace(readText(t, dir, "service.yaml.gotmpl"), "port: 80", "port: 81", 1))
	write(t, dir, ".test-fixtures/defaults/more.yaml", "a: b\n")
	got := run(t, nil, "validate", dir)
	g.Expect(got).To(ContainSubstring("File mismatch against fixture in service.yaml: Testcase \"defaults\"\n--- FIXTURE/service.yaml\n+++ ACTUAL/service.yaml\n"))
	g.Expect(got).To(ContainSubstring("-    port: 80\n+    port: 81\n"))
	g.Expect(got).To(ContainSubstring("file more.yaml should not exist, filtered or empty after template render"))
}

func readText(t *testing.T, dir, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestKickstart(t *testing.T) {
	g := NewWithT(t)
	base := t.TempDir()
	write(t, base, "in/all.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template: {spec: {containers: [{name: web, image: "web:1"}]}}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: thing, namespace: shop}
data: {text: "{{ not a template }}"}
`)
	out := filepath.Join(base, "shop")
	g.Expect(run(t, nil, "kickstart", out, "-f", filepath.Join(base, "in"), "-p", "all")).To(Equal(
		"Kickstarted the \"shop\" package with 3 objects.\n[WARN] Some kinds don't have availability probes defined:\n- Thing.example.com\n"))
	clitest.Golden(t, "kickstart.txt", contents(t, out))
	g.Expect(run(t, nil, "validate", out)).To(Equal("Package validated successfully!"))
	g.Expect(readText(t, out, ".test-fixtures/defaults/deploy/web.deployment.yaml")).To(And(ContainSubstring("replicas: 3"), ContainSubstring(`image: "web:1"`), ContainSubstring(`namespace: "shop"`)))
	g.Expect(readText(t, out, ".test-fixtures/defaults/other/thing.thing.yaml")).To(ContainSubstring("{{ not a template }}"))
	files, err := load.Folder(out)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = images.Build(files, nil)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestInit(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "my-app")
	g.Expect(run(t, nil, "init", dir)).To(Equal(`Package "my-app" initialized in ` + dir + ".\n"))
	clitest.Golden(t, "init.txt", contents(t, dir))
	g.Expect(run(t, nil, "validate", dir)).To(Equal("Package validated successfully!"))
	g.Expect(run(t, nil, "init", dir)).To(HavePrefix("Error: package folder already exists"))
}
