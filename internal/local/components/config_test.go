package components

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestFilesAndProcesses(t *testing.T) {
	g := NewWithT(t)
	p := Paths{State: t.TempDir()}
	pki, err := PKI(p, noon)
	g.Expect(err).NotTo(HaveOccurred())
	files, err := Files(p, pki)
	g.Expect(err).NotTo(HaveOccurred())
	again, err := Files(p, pki)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(Equal(again), "When files are rendered twice they should be the same")
	g.Expect(Write(p, files)).To(Succeed())

	t.Run("When a process names a file of ours it should be there", func(t *testing.T) {
		g := NewWithT(t)
		for _, proc := range Processes(p, pki) {
			for _, a := range proc.Args {
				_, value, _ := strings.Cut(a, "=")
				if strings.HasPrefix(value, p.PKI()) || strings.HasPrefix(value, p.Conf("")) {
					_, err := os.Stat(value)
					g.Expect(err).NotTo(HaveOccurred(), proc.Name+" "+a)
				}
			}
		}
	})
	t.Run("When a process depends on another it should be listed after it", func(t *testing.T) {
		g := NewWithT(t)
		var before []string
		for _, proc := range Processes(p, pki) {
			for _, dep := range proc.After {
				g.Expect(slices.Contains(before, dep)).To(BeTrue(), proc.Name+" after "+dep)
			}
			before = append(before, proc.Name)
		}
	})
	t.Run("When a process listens it should be on loopback or the bridge only", func(t *testing.T) {
		g := NewWithT(t)
		for _, proc := range Processes(p, pki) {
			g.Expect(strings.Join(proc.Args, " ")).NotTo(ContainSubstring("0.0.0.0"))
		}
		for _, f := range files {
			text := strings.ReplaceAll(string(f.Data), "0.0.0.0/0", "") // the pods' default route
			g.Expect(text).NotTo(ContainSubstring("0.0.0.0"), f.Path)
		}
	})
	t.Run("When files are written again nothing should be touched", func(t *testing.T) {
		g := NewWithT(t)
		old := time.Unix(1, 0)
		for _, f := range files {
			g.Expect(os.Chtimes(f.Path, old, old)).To(Succeed())
		}
		g.Expect(Write(p, files)).To(Succeed())
		for _, f := range files {
			info, err := os.Stat(f.Path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.ModTime()).To(BeTemporally("==", old))
		}
	})
}
