package boot

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/machine/ignite"
)

func quiet(string, ...any) {}

func TestMetadata(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	t.Run("When all is given it should write lines for units", func(t *testing.T) {
		g := NewWithT(t)
		m, err := ReadMetadata(env("MACHINE_PROVIDER_ID", "local://clusters-demo/w-1", "MACHINE_NODE_NAME", "w-1", "MACHINE_NODE_IP", "10.244.0.9"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(m.file())).To(Equal("MACHINE_NODE_IP=10.244.0.9\nMACHINE_NODE_NAME=w-1\nMACHINE_PROVIDER_ID=local://clusters-demo/w-1\n"))
	})
	t.Run("When values are wrong it should name all of them, and no line can be smuggled in", func(t *testing.T) {
		g := NewWithT(t)
		_, err := ReadMetadata(env("MACHINE_PROVIDER_ID", "x", "MACHINE_NODE_NAME", "a\nB=c", "MACHINE_NODE_IP", "here"))
		g.Expect(err).To(MatchError(And(ContainSubstring("MACHINE_PROVIDER_ID"), ContainSubstring("MACHINE_NODE_NAME"), ContainSubstring("MACHINE_NODE_IP"))))
	})
}

func TestDisk(t *testing.T) {
	image := func(t *testing.T) string {
		dir := t.TempDir()
		g := NewWithT(t)
		g.Expect(os.MkdirAll(filepath.Join(dir, "containerd"), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "passwd"), []byte("root"), 0o644)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "resolv.conf"), []byte("search a.b c\nnameserver 10.0.0.1\noptions ndots:5\n"), 0o644)).To(Succeed())
		g.Expect(os.Symlink("passwd", filepath.Join(dir, "link"))).To(Succeed())
		return dir
	}
	t.Run("When the disk is empty it should be made bootable, without the pod's search domains", func(t *testing.T) {
		g := NewWithT(t)
		disk := t.TempDir()
		g.Expect(prepareDisk(disk, image(t))).To(BeTrue())
		id, err := os.ReadFile(filepath.Join(disk, etcDir, "machine-id"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(id)).To(MatchRegexp(`^[0-9a-f]{32}\n$`))
		g.Expect(os.ReadFile(filepath.Join(disk, etcDir, "resolv.conf"))).To(BeEquivalentTo("nameserver 10.0.0.1\n"))
		g.Expect(os.Readlink(filepath.Join(disk, etcDir, "link"))).To(Equal("passwd"))
		info, err := os.Stat(filepath.Join(disk, etcDir, "containerd"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o750))
	})
	t.Run("When the first boot was interrupted it should begin anew", func(t *testing.T) {
		g := NewWithT(t)
		disk := t.TempDir()
		g.Expect(prepareDisk(disk, image(t))).To(BeTrue())
		g.Expect(os.WriteFile(filepath.Join(disk, "lib/half"), nil, 0o600)).To(Succeed())
		g.Expect(prepareDisk(disk, image(t))).To(BeTrue())
		g.Expect(filepath.Join(disk, "lib/half")).NotTo(BeAnExistingFile())
	})
	t.Run("When the machine has booted before it should keep what is there and follow the pod's resolvers", func(t *testing.T) {
		g := NewWithT(t)
		disk, etc := t.TempDir(), image(t)
		g.Expect(prepareDisk(disk, etc)).To(BeTrue())
		g.Expect(os.WriteFile(filepath.Join(disk, etcDir, "passwd"), []byte("changed"), 0o644)).To(Succeed())
		g.Expect(Mark(disk, []string{"a.service", "b.service"})).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(etc, "resolv.conf"), []byte("nameserver 10.0.0.2\n"), 0o644)).To(Succeed())
		g.Expect(prepareDisk(disk, etc)).To(BeFalse())
		g.Expect(Marked(disk)).To(Equal([]string{"a.service", "b.service"}))
		g.Expect(os.ReadFile(filepath.Join(disk, etcDir, "passwd"))).To(BeEquivalentTo("changed"))
		g.Expect(os.ReadFile(filepath.Join(disk, etcDir, "resolv.conf"))).To(BeEquivalentTo("nameserver 10.0.0.2\n"))
	})
}

func TestDelegate(t *testing.T) {
	t.Run("When control groups are version 2 it should move processes into a child and hand controllers on", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir() // files stand for the kernel's
		for file, content := range map[string]string{"cgroup.procs": "1\n7\n", "cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": ""} {
			g.Expect(os.WriteFile(filepath.Join(root, file), []byte(content), 0o644)).To(Succeed())
		}
		g.Expect(delegate(root)).To(Succeed())
		g.Expect(os.ReadFile(filepath.Join(root, "init.scope/cgroup.procs"))).To(BeEquivalentTo("7"))
		g.Expect(os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))).To(BeEquivalentTo("+cpu +memory +pids"))
	})
	t.Run("When the folder is none of version 2 it should change nothing", func(t *testing.T) {
		NewWithT(t).Expect(prepareCgroups(t.TempDir())).To(Equal("v1"))
	})
}

func TestSysctl(t *testing.T) {
	g := NewWithT(t)
	root, proc := t.TempDir(), t.TempDir()
	files := map[string]string{
		"etc/sysctl.d/90-a.conf":     "# comment\nnet.ipv4.ip_forward = 1\nvm.overcommit_memory=1\n-net.none.such=1\n",
		"usr/lib/sysctl.d/90-a.conf": "net.ipv4.ip_forward=0\n",
		"etc/sysctl.d/95-b.conf":     "net/ipv4/conf/eth0.1/rp_filter=0\n../../etc/passwd=x\n",
		"etc/sysctl.d/96-c.conf":     "net/../kernel/panic=1\nkernel/shm/../../vm/overcommit_memory=1\nnet//ipv4/./tcp_retries1=3\n",
	}
	for file, content := range files {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, file), []byte(content), 0o644)).To(Succeed())
	}
	for _, dir := range []string{"net/ipv4/conf/eth0.1", "vm", "kernel/shm"} {
		g.Expect(os.MkdirAll(filepath.Join(proc, dir), 0o755)).To(Succeed())
	}
	var said strings.Builder
	applySysctl(proc, readSysctl(root), func(f string, a ...any) { fmt.Fprintf(&said, f, a...) })
	g.Expect(os.ReadFile(filepath.Join(proc, "net/ipv4/ip_forward"))).To(BeEquivalentTo("1"), "When a name is in two folders the first should count")
	g.Expect(os.ReadFile(filepath.Join(proc, "net/ipv4/conf/eth0.1/rp_filter"))).To(BeEquivalentTo("0"))
	g.Expect(filepath.Join(proc, "vm/overcommit_memory")).NotTo(BeAnExistingFile(), "When a setting is the kernel's it should be left alone")
	g.Expect(filepath.Join(proc, "kernel/panic")).NotTo(BeAnExistingFile(), "When a path leads from the machine's own settings to the kernel's it should be left alone")
	g.Expect(os.ReadFile(filepath.Join(proc, "net/ipv4/tcp_retries1"))).To(BeEquivalentTo("3"), "When a path is written in another way it should be the same setting")
	g.Expect(said.String()).To(And(ContainSubstring("vm.overcommit_memory"), ContainSubstring("kernel.panic")))
	g.Expect(readSysctl(root)).To(HaveLen(7), "a path that leads elsewhere is no setting")
}

func TestProvision(t *testing.T) {
	t.Run("When the endpoint refuses at first and the token is replaced it should ask on and boot", func(t *testing.T) {
		g := NewWithT(t)
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.Header.Get("Authorization") != "Bearer new" {
				w.WriteHeader(http.StatusNetworkAuthenticationRequired)
				return
			}
			fmt.Fprint(w, `{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"a.service","enabled":true,"contents":"[Service]\nExecStart=/bin/true\n"}]}}`)
		}))
		t.Cleanup(server.Close)
		userData := filepath.Join(t.TempDir(), "value")
		give := func(token string) {
			g.Expect(os.WriteFile(userData, fmt.Appendf(nil, `{"ignition":{"version":"3.2.0","config":{"merge":[{"source":%q,"httpHeaders":[{"name":"Authorization","value":"Bearer %s"}]}]}}}`, server.URL, token), 0o600)).To(Succeed())
		}
		give("old")
		go func() {
			for asked.Load() < 3 {
				time.Sleep(5 * time.Millisecond)
			}
			give("new")
		}()
		var console bytes.Buffer
		c := newConsole(&console, clock.RealClock{})
		units, err := provision(t.Context(), userData, &ignite.Writer{Root: t.TempDir(), Say: quiet}, clock.RealClock{}, c.say)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(units).To(Equal([]string{"a.service"}))
		g.Expect(strings.Count(console.String(), "answered 511")).To(Equal(1), "the same problem is told once")
	})
	t.Run("When there is no user data yet it should wait until told to stop", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := provision(ctx, filepath.Join(t.TempDir(), "none"), &ignite.Writer{Root: t.TempDir(), Say: quiet}, clock.RealClock{}, quiet)
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
	})
}

func TestRetryDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := retryDelay(rapid.IntRange(0, 1<<30).Draw(t, "attempt"), &ignite.StatusError{Code: rapid.IntRange(200, 599).Draw(t, "code")})
		if d < firstRetry || d > refusedRetry {
			t.Fatalf("waits %s", d)
		}
	})
}

func TestConsole(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	now := clocktesting.NewFakePassiveClock(time.Now())
	c := newConsole(&out, now)
	now.SetTime(now.Now().Add(1250 * time.Millisecond))
	c.say("%s", strings.Repeat("x", 1<<20)+"\xff")
	g.Expect(out.Len()).To(BeNumerically("<", maxMessage+100))
	g.Expect(out.String()).To(HavePrefix("[    1.250] x"))
}

func TestOnlyAsFirstProcess(t *testing.T) {
	err := (&Init{Clock: clock.RealClock{}}).Run(t.Context())
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("only runs as process 1")), "or it would end every process of the machine it is tried on")
}
