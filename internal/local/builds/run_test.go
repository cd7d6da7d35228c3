package builds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestFollow(t *testing.T) {
	g := NewWithT(t)
	var said []string
	first := make(chan struct{}) // the first package is reported: what is counted before would already be in that report
	c := counter{stale: func() int { <-first; return 2 }}
	c.report = func(p Progress) {
		if p.Compiled == 1 {
			close(first)
			c.counting.Wait()
		}
		said = append(said, p.String())
	}
	output := c.follow(strings.NewReader("go: downloading k8s.io/api v0.36.3\na/b\n# c/d\nc/d/x.go:1:2: undefined: y\n\te/f: note\nc/d\ne/f\ng/h\nno newline at the end"))
	g.Expect(output).To(Equal("# c/d\nc/d/x.go:1:2: undefined: y\n\te/f: note\nno newline at the end"), "what the compiler says")
	g.Expect(said).To(Equal([]string{
		"downloading modules, 1 so far", "compiling, 1 packages so far", "compiling, 2 of 3 packages", "linking, 3 packages are compiled", "linking, 4 packages are compiled",
	}))
}

func TestBuild(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.test/x\n\ngo 1.21\n")
	write("one/main.go", "package main\n\nfunc main() {}\n")
	write("two/main.go", "package main\n\nimport \"example.test/x/lib\"\n\nfunc main() { println(lib.X) }\n")
	write("lib/lib.go", "package lib\n\nconst X = 1\n")
	target := Target{Name: "x", Dir: ".", Packages: []string{"./one", "./two"}, Out: "bin/", LDFlags: "-s -w"}
	quiet := func(Progress) {}

	t.Run("When several programs are built together each should be there", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(target.There(root)).To(BeFalse())
		g.Expect(Build(t.Context(), root, target, quiet)).To(Succeed())
		g.Expect(target.There(root)).To(BeTrue())
	})
	t.Run("When everything is in the cache nothing should be reported", func(t *testing.T) {
		NewWithT(t).Expect(Build(t.Context(), root, target, func(p Progress) { t.Errorf("reported %s", p) })).To(Succeed())
	})
	t.Run("When the compiler fails all that it says should be in the error", func(t *testing.T) {
		g := NewWithT(t)
		write("lib/lib.go", "package lib\n\nconst X = missing\n")
		err := Build(t.Context(), root, target, quiet)
		g.Expect(err).To(MatchError(And(HavePrefix("exit status 1\n"), ContainSubstring("lib/lib.go:3:11: undefined: missing"))))
	})
}

func TestTimes(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.MkdirAll(filepath.Join(root, "bin"), 0o700)).To(Succeed())
	a, b := Target{Name: "a", Out: "bin/a", Typical: 100 * time.Second}, Target{Name: "b", Out: "bin/b", Typical: 50 * time.Second}
	times := ReadTimes(root)
	g.Expect(times.Left([]Target{a, b}, Progress{}, 10*time.Second)).To(Equal(140*time.Second), "by what is typical")
	g.Expect(times.Left([]Target{a, b}, Progress{Compiled: 100, Packages: 400}, 10*time.Second)).To(Equal(80*time.Second), "by how fast it goes")

	times.Note(a, Progress{Compiled: 400}, 40*time.Second)
	times.Note(a, Progress{Compiled: 3}, time.Second)
	times.Note(b, Progress{}, time.Second)
	times = ReadTimes(root)
	g.Expect(times.Expected(a)).To(Equal(40*time.Second), "the largest build that was seen")
	g.Expect(times.Expected(b)).To(Equal(50 * time.Second))

	g.Expect(os.WriteFile(filepath.Join(root, "bin/b"), nil, 0o600)).To(Succeed())
	g.Expect(times.Left([]Target{a, b}, Progress{}, 0)).To(Equal(42*time.Second), "what is there is probably up to date")
	g.Expect(times.Left([]Target{b, a}, Progress{}, 0)).To(Equal(42*time.Second), "the first, too, while nothing of it is compiled")
	g.Expect(times.Left([]Target{b}, Progress{Compiled: 1}, 0)).To(Equal(50*time.Second), "which then it isn't")
	g.Expect(os.WriteFile(filepath.Join(root, timesFile), []byte("torn"), 0o600)).To(Succeed())
	g.Expect(ReadTimes(root).Expected(a)).To(Equal(100 * time.Second))
}
