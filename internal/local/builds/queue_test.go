package builds

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

func TestQueue(t *testing.T) {
	t.Run("When targets wait it should say which one it is at, and how long it and those behind it take", func(t *testing.T) {
		g := NewWithT(t)
		q := NewQueue(t.TempDir(), clock.RealClock{},
			Target{Name: "a", Out: "a", Typical: time.Hour}, Target{Name: "b", Out: "b", Typical: 100 * time.Second}, Target{Name: "c", Out: "c", Typical: 50 * time.Second})
		g.Expect(q.Step()).To(Equal(Step{Name: "a", Number: 1, Total: 3, Left: time.Hour + 150*time.Second}))
		q.left = q.left[1:]
		p := Progress{Compiled: 10, Packages: 20}
		g.Expect(q.step(p, 10*time.Second)).To(Equal(Step{Name: "b", Number: 2, Total: 3, Progress: p, Left: 60 * time.Second}))
	})
	t.Run("When a target fails it should stay the next one, and leave the queue once it is built", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir()
		file := filepath.Join(root, "main.go")
		g.Expect(os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.test/x\n\ngo 1.21\n"), 0o600)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte("package main\n\nfunc main() { missing() }\n"), 0o600)).To(Succeed())
		q := NewQueue(root, clock.RealClock{}, Target{Name: "x", Dir: ".", Packages: []string{"."}, Out: "bin/x"})
		quiet := func(Step) {}
		g.Expect(q.Next(t.Context(), quiet)).To(MatchError(ContainSubstring("undefined: missing")))
		g.Expect(q.Empty()).To(BeFalse())
		g.Expect(os.WriteFile(file, []byte("package main\n\nfunc main() {}\n"), 0o600)).To(Succeed())
		g.Expect(q.Next(t.Context(), quiet)).To(Succeed())
		g.Expect(q.Empty()).To(BeTrue())
	})
}
