package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := command(name)
	out := &bytes.Buffer{}
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

func TestCommand(t *testing.T) {
	t.Run("When called by its own name it should list every role", func(t *testing.T) {
		g := NewWithT(t)
		out, err := run(t.Context(), "hcp-sidecar", "--help")
		g.Expect(err).NotTo(HaveOccurred())
		for _, role := range []string{"audit-tail", "availability-prober", "etcd-init", "kas-bootstrap", "pause", "token-minter", "version", "wait-dns"} {
			g.Expect(out).To(ContainSubstring(role))
		}
	})
	t.Run("When called by a role's name it should be that role", func(t *testing.T) {
		g := NewWithT(t)
		out, err := run(t.Context(), "version")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(HavePrefix("hcp-sidecar "))
	})
	t.Run("When every role is asked for help it should give an example", func(t *testing.T) {
		g := NewWithT(t)
		for _, build := range roles {
			role := build()
			g.Expect(role.Example).NotTo(BeEmpty(), role.Name())
			for _, sub := range role.Commands() {
				g.Expect(sub.Example).NotTo(BeEmpty(), sub.CommandPath())
			}
		}
	})
	t.Run("When the role is unknown it should be an error", func(t *testing.T) {
		_, err := run(t.Context(), "hcp-sidecar", "ectd-init")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("unknown command")))
	})
	t.Run("When pausing is interrupted it should end well", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := run(ctx, "pause")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

func TestMemory(t *testing.T) {
	t.Run("When a sidecar idles it should be resident with a few MiB", func(t *testing.T) {
		g := NewWithT(t)
		binary := filepath.Join(t.TempDir(), "audit-tail") // answers to its name
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		log := filepath.Join(t.TempDir(), "audit.log")
		g.Expect(os.WriteFile(log, bytes.Repeat([]byte("a line of the audit log\n"), 100_000), 0o600)).To(Succeed())
		sidecar := exec.CommandContext(t.Context(), binary, log)
		counted := &counter{}
		sidecar.Stdout = counted
		// A machine whose huge pages are "always" gives 2 MiB for each first byte: up to 5 MiB more, which says nothing of the program. Children inherit this.
		g.Expect(unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)).To(Succeed())
		defer func() { g.Expect(unix.Prctl(unix.PR_SET_THP_DISABLE, 0, 0, 0, 0)).To(Succeed()) }()
		g.Expect(sidecar.Start()).To(Succeed())
		defer func() { _ = sidecar.Process.Kill(); _ = sidecar.Wait() }()
		g.Eventually(counted.n.Load).WithTimeout(20 * time.Second).Should(Equal(int64(2_400_000)))
		// 7 MiB when this was written, 5 of them the binary's own pages; the bound leaves room for other machines, not for a library.
		g.Expect(resident(t, sidecar.Process.Pid)).To(BeNumerically("<", 12<<20))
	})
}

// counter counts what is written to it.
type counter struct{ n atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

func resident(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if kib, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(kib)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("no VmRSS of process %d", pid)
	return 0
}

// Each of these costs every sidecar of every hosted cluster megabytes, by being linked alone.
func TestImports(t *testing.T) {
	t.Run("When the binary is linked it should hold no heavy library", func(t *testing.T) {
		g := NewWithT(t)
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
		g.Expect(err).NotTo(HaveOccurred())
		for _, heavy := range []string{
			"sigs.k8s.io/controller-runtime", "k8s.io/client-go", "k8s.io/api", "google.golang.org/grpc", "go.etcd.io/etcd",
			"github.com/prometheus/client_golang",
		} {
			for dep := range strings.Lines(string(out)) {
				g.Expect(dep).NotTo(HavePrefix(heavy + "/"))
			}
		}
	})
}
