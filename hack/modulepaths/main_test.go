package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// published is an address that nothing has.
const published = "git.example.org/team/hcp"

// elsewhere is a copy of the repository in another folder, without what was made of it.
func elsewhere(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	from, err := filepath.Abs(filepath.Join("..", ".."))
	g.Expect(err).NotTo(HaveOccurred())
	files, err := sources(from)
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range files {
		if strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, "docs/examples/") || strings.Contains(name, "/testdata/") {
			continue // they name no modules, and are most of it; the test below looks at them where they are
		}
		data, err := os.ReadFile(filepath.Join(from, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, name), data, 0o600)).To(Succeed())
	}
	return dir
}

// golang runs the go command in a folder.
func golang(t *testing.T, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=mod -buildvcs=false -trimpath -gcflags=all=-dwarf=false")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestRename(t *testing.T) {
	g := NewWithT(t)
	dir := elsewhere(t)
	changed, err := rename(dir, published)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changed).To(BeNumerically(">", 1000))

	t.Run("When modules have got an address nothing should name the old one", func(t *testing.T) {
		g := NewWithT(t)
		files, err := sources(dir)
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range files {
			data, err := os.ReadFile(filepath.Join(dir, name))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bytes.Contains(data, []byte(strings.Join([]string{"hcp", "internal/"}, ".")))).To(BeFalse(), name)
		}
	})
	t.Run("When it is done again nothing should change", func(t *testing.T) {
		g := NewWithT(t)
		again, err := rename(dir, published)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(BeZero())
	})
	t.Run("When packages are looked up by their new paths all should be found", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(golang(t, dir, "list", "./cmd/...", "./internal/...")).To(ContainSubstring(published + "/internal/hostedcluster\n"))
		g.Expect(golang(t, filepath.Join(dir, "api"), "list", "./...")).To(ContainSubstring(published + "/api/hypershift/v1beta1\n"))
		g.Expect(golang(t, dir, "build", "-o", os.DevNull, "./internal/contract/...", "./internal/version")).To(BeEmpty())
	})
	t.Run("When somebody imports the API module their program should list hosted clusters", func(t *testing.T) { listHostedClusters(t, dir) })
}

// listHostedClusters builds the example of docs/examples/list outside of the repository, and runs it against a real API server.
func listHostedClusters(t *testing.T, repository string) {
	g := NewWithT(t)
	program := t.TempDir()
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(repository, "docs", "examples", "list", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(program, name), data, 0o600)).To(Succeed())
	}
	golang(t, program, "mod", "edit", "-replace", published+"/api="+filepath.Join(repository, "api"))
	golang(t, program, "vet", ".")
	golang(t, program, "build", "-o", "list", ".")

	env := testenv.Start(t)
	hc := testenv.HostedCluster(env.Namespace(t), "listed")
	c := env.Client(t, connect.Scheme())
	g.Expect(c.Create(t.Context(), hc)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), hc) })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(program, "list"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(string(out)).To(ContainSubstring(hc.Namespace + "/listed\t-\tavailable: false\n"))
}

func TestReplacer(t *testing.T) {
	replace := replacer(map[string]string{"old.internal/api": "new.example/api", "old.internal/platform": "new.example", "old.internal/platform/test/x": "new.example/test/x"})
	for name, tc := range map[string]struct{ text, want string }{
		"When a package is imported it should follow its module":       {`import "old.internal/platform/internal/a"`, `import "new.example/internal/a"`},
		"When a module is below another it should keep its own folder": {`"old.internal/platform/test/x/y"`, `"new.example/test/x/y"`},
		"When two stand side by side both should be replaced":          {`old.internal/api old.internal/platform`, `new.example/api new.example`},
		"When a name only begins so it should stay":                    {`"old.internal/apis"`, `"old.internal/apis"`},
		"When it is a part of another path it should stay":             {`"x/old.internal/api"`, `"x/old.internal/api"`},
		"When a sentence ends with it it should be replaced":           {"see old.internal/api.\n", "see new.example/api.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(string(replace([]byte(tc.text)))).To(Equal(tc.want))
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, root := range []string{"", "https://github.com/acme/hcp", "hcp", "github.com/acme/", "github.com/ac me"} {
		t.Run("When the path is "+root+" it should be refused", func(t *testing.T) {
			_, err := rename(t.TempDir(), root)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("-root")))
		})
	}
	t.Run("When there is no module it should say so", func(t *testing.T) {
		_, err := rename(t.TempDir(), published)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no go.mod")))
	})
}
