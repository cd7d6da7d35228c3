package builds

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFindRoot(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	g.Expect(os.MkdirAll(below, 0o755)).To(Succeed())

	_, err := FindRoot(below)
	g.Expect(err).To(MatchError(And(ContainSubstring("is a checkout of this project"), ContainSubstring("--root"))),
		"When there is no checkout it should say where to go")

	g.Expect(os.WriteFile(filepath.Join(dir, "a", "go.mod"), []byte("module example.com/other\n"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+Module+"\n\ngo 1.26\n"), 0o600)).To(Succeed())
	g.Expect(FindRoot(below)).To(Equal(dir), "When another module is on the way it should go on upwards")
}

func TestKubernetes(t *testing.T) {
	t.Run("When a release is known it should be built with its module file and version", func(t *testing.T) {
		g := NewWithT(t)
		got, err := Kubernetes("1.35.4")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.ModFile).To(Equal("v1.35.mod"))
		g.Expect(got.Out).To(Equal("bin/kubernetes/v1.35.4/kube"))
		g.Expect(got.LDFlags).To(And(ContainSubstring("gitVersion=v1.35.4"), ContainSubstring("gitMinor=35")))
	})
	t.Run("When a release is not known it should name those that are", func(t *testing.T) {
		_, err := Kubernetes("1.30.0")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("1.35.4, 1.36.3")))
	})
	t.Run("When releases are listed each should have a module file", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(KnownReleases()).To(HaveLen(len(Releases)))
		for _, v := range KnownReleases() {
			g.Expect(filepath.Join("..", "..", "..", "kubernetes", Releases[v])).To(BeARegularFile())
		}
	})
}

func TestCommit(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(Commit(root)).To(BeEmpty(), "without a repository")
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@example.test", "commit", "-q", "--allow-empty", "-m", "first"}} {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
	commit := Commit(root)
	g.Expect(commit).To(MatchRegexp("^[0-9a-f]{12}$"))
	g.Expect(Programs(root).LDFlags).To(HaveSuffix("/internal/version.commit=" + commit))
	if os.Geteuid() == 0 {
		g.Expect(os.Chown(root, 12345, 12345)).To(Succeed())
		g.Expect(Commit(root)).To(Equal(commit), "of a checkout that belongs to somebody else")
	}
}
