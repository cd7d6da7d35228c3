package main

import (
	"archive/zip"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/version"
)

// lookIntoArchives unpacks those of all systems, and runs the program for this one.
func lookIntoArchives(t *testing.T, dir string) {
	t.Helper()
	g := NewWithT(t)
	found := 0
	for _, s := range systems {
		archive := filepath.Join(dir, (&distribution{version: version.Semver()}).archive(s))
		if _, err := os.Stat(archive); err != nil {
			continue
		}
		found++
		to := t.TempDir()
		unpackTo(t, archive, to)
		for _, name := range []string{"hypershift", "kubectl-hypershift", "kubectl-package"} {
			g.Expect(systemOf(filepath.Join(to, name+s.exe()))).To(Equal(s), name)
		}
		if s != (system{runtime.GOOS, runtime.GOARCH}) {
			continue
		}
		for _, name := range []string{"hypershift", "kubectl-hypershift"} {
			out, err := exec.CommandContext(t.Context(), filepath.Join(to, name), "version", "--client-only").CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(out))
			g.Expect(string(out)).To(ContainSubstring("v"+version.Semver()), name)
		}
	}
	if found == 0 {
		t.Skip("there are no archives of this version: make dist DIST_PARTS=archives")
	}
	t.Logf("%d archives", found)
}

// unpackTo unpacks an archive as its readers do.
func unpackTo(t *testing.T, archive, to string) {
	t.Helper()
	g := NewWithT(t)
	if strings.HasSuffix(archive, ".tar.gz") {
		out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", to).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		return
	}
	z, err := zip.OpenReader(archive)
	g.Expect(err).NotTo(HaveOccurred())
	defer z.Close()
	g.Expect(os.CopyFS(to, z)).To(Succeed())
}

// systemOf reads from a program what it is for.
func systemOf(file string) system {
	if f, err := elf.Open(file); err == nil {
		defer f.Close()
		return system{"linux", map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]}
	}
	if f, err := macho.Open(file); err == nil {
		defer f.Close()
		return system{"darwin", map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]}
	}
	if f, err := pe.Open(file); err == nil {
		defer f.Close()
		return system{"windows", map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[f.Machine]}
	}
	return system{}
}

// readKrew compares what plugins' manifests say of archives.
func readKrew(t *testing.T, dir string) {
	t.Helper()
	g := NewWithT(t)
	manifests, err := filepath.Glob(filepath.Join(dir, "krew", "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	if len(manifests) == 0 {
		t.Skip("there are no manifests of krew: make dist DIST_PARTS=krew")
	}
	for _, manifest := range manifests {
		raw, err := os.ReadFile(manifest)
		g.Expect(err).NotTo(HaveOccurred())
		var plugin struct {
			Spec struct {
				Platforms []struct{ URI, SHA256 string }
			}
		}
		g.Expect(yaml.Unmarshal(raw, &plugin)).To(Succeed())
		g.Expect(plugin.Spec.Platforms).NotTo(BeEmpty())
		for _, p := range plugin.Spec.Platforms {
			g.Expect(sumOf(filepath.Join(dir, p.URI[strings.LastIndex(p.URI, "/")+1:]))).To(Equal(p.SHA256), "%s: %s", manifest, p.URI)
		}
	}
	t.Logf("%d plugins", len(manifests))
}
