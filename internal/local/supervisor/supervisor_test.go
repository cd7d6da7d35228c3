package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

func TestBackoff(t *testing.T) {
	t.Run("When a process fails at once it should wait longer each time, up to a limit", func(t *testing.T) {
		g := NewWithT(t)
		var b backoff
		var got []time.Duration
		for range 9 {
			got = append(got, b.next(time.Millisecond))
		}
		g.Expect(got[:3]).To(Equal([]time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}))
		g.Expect(got[8]).To(Equal(maxDelay))
	})
	t.Run("When a process has run for long it should start over", func(t *testing.T) {
		g := NewWithT(t)
		b := backoff{failures: 20}
		g.Expect(b.next(time.Hour)).To(Equal(firstDelay))
	})
}

func TestParseStartTime(t *testing.T) {
	fields := strings.Repeat("0 ", 18) + "4711 0 0"
	for name, tc := range map[string]struct {
		stat string
		want uint64
		err  bool
	}{
		"When the name holds blanks and parentheses it should find the field": {stat: "1 (a) b (c)) S " + fields, want: 4711},
		"When the process is a zombie it should say that it has ended":        {stat: "1 (a) Z " + fields, err: true},
		"When the line is cut it should say so":                               {stat: "1 (a) S 0 0", err: true},
		"When there is no name it should say so":                              {stat: "1", err: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := parseStartTime(tc.stat)
			g.Expect(err != nil).To(Equal(tc.err))
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestLogFile(t *testing.T) {
	t.Run("When a log reaches its limit it should keep one older file", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "a.log")
		l, err := openLog(path, 10)
		g.Expect(err).NotTo(HaveOccurred())
		for _, s := range []string{"first line\n", "second\n", "third\n"} {
			_, err := fmt.Fprint(l, s)
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(os.ReadFile(path)).To(BeEquivalentTo("third\n"))
		g.Expect(os.ReadFile(path + ".1")).To(BeEquivalentTo("second\n"))
	})
}

func TestOpenLog(t *testing.T) {
	t.Run("When the log of a former run is large it should keep it as the older file, and go on with a smaller one", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "a.log")
		start := func(line string) {
			f, err := OpenLog(path)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = fmt.Fprintln(f, line)
			g.Expect(errors.Join(err, f.Close())).NotTo(HaveOccurred())
		}
		start("one")
		start("two")
		g.Expect(os.ReadFile(path)).To(BeEquivalentTo("one\ntwo\n"))
		g.Expect(os.Truncate(path, maxLogBytes)).To(Succeed()) // a hole, which takes no space
		start("three")
		g.Expect(os.ReadFile(path)).To(BeEquivalentTo("three\n"))
		info, err := os.Stat(path + ".1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Size()).To(BeEquivalentTo(maxLogBytes))
	})
}

// run starts a supervisor that ends with the test.
func run(t *testing.T, processes ...Process) *Supervisor {
	t.Helper()
	dir := t.TempDir()
	s := &Supervisor{
		Processes: processes, LogDir: dir, StatusFile: filepath.Join(dir, "status.json"), ConfigHash: "h",
		Clock: clock.RealClock{}, Log: logr.Discard(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		NewWithT(t).Eventually(done, 20*time.Second).Should(Receive(BeNil()))
	})
	return s
}

func shell(name, script string, after ...string) Process {
	return Process{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, After: after, Ready: func(context.Context) error { return nil }}
}

func get(s *Supervisor, name string) func() ProcessStatus {
	return func() ProcessStatus {
		st, err := ReadStatus(s.StatusFile)
		if err != nil {
			return ProcessStatus{}
		}
		for _, p := range st.Processes {
			if p.Name == name {
				return p
			}
		}
		return ProcessStatus{}
	}
}

func TestRestart(t *testing.T) {
	t.Run("When a process is to start anew it should, and others stay as they are", func(t *testing.T) {
		g := NewWithT(t)
		s := run(t, shell("a", "exec sleep 100"), shell("b", "exec sleep 100"))
		g.Eventually(func() bool { return get(s, "a")().Ready && get(s, "b")().Ready }).Should(BeTrue())
		a, b := get(s, "a")(), get(s, "b")()
		s.Restart("a")
		s.Restart("nobody")
		g.Eventually(get(s, "a")).Should(And(HaveField("Restarts", 1), HaveField("Ready", true), HaveField("PID", Not(Equal(a.PID)))))
		g.Expect(get(s, "b")().PID).To(Equal(b.PID))
	})
}

func TestSupervisor(t *testing.T) {
	t.Run("When a process is killed it should be started again and say how it ended", func(t *testing.T) {
		g := NewWithT(t)
		s := run(t, shell("a", "exec sleep 1000"))
		g.Eventually(get(s, "a"), 10*time.Second).Should(HaveField("Ready", true))
		first := get(s, "a")()
		g.Expect(syscall.Kill(first.PID, syscall.SIGKILL)).To(Succeed())
		g.Eventually(get(s, "a"), 10*time.Second).Should(And(HaveField("Ready", true), HaveField("Restarts", 1), HaveField("LastExit", "signal: killed")))
		g.Expect(get(s, "a")().PID).NotTo(Equal(first.PID))
	})
	t.Run("When a dependency is not ready it should wait and say for whom", func(t *testing.T) {
		g := NewWithT(t)
		ready := make(chan struct{})
		first := shell("first", "exec sleep 1000")
		first.Ready = func(context.Context) error {
			select {
			case <-ready:
				return nil
			default:
				return errors.New("not yet")
			}
		}
		s := run(t, first, shell("second", "exec sleep 1000", "first"))
		g.Eventually(get(s, "second"), 10*time.Second).Should(HaveField("Waiting", "waits for first"))
		g.Expect(get(s, "second")().PID).To(BeZero())
		close(ready)
		g.Eventually(get(s, "second"), 10*time.Second).Should(HaveField("Ready", true))
	})
	t.Run("When it ends it should stop the children in reverse order, also one that ignores SIGTERM", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		order := filepath.Join(dir, "order")
		script := func(n string) string {
			return "trap 'echo " + n + " >> " + order + "; exit 0' TERM; touch " + filepath.Join(dir, "trap-"+n) + "; while :; do sleep 0.05; done"
		}
		trapped := func(n, script string, after ...string) Process { // ready when it has set its trap
			p := shell(n, script, after...)
			p.Ready = func(context.Context) error {
				_, err := os.Stat(filepath.Join(dir, "trap-"+n))
				return err
			}
			return p
		}
		s := &Supervisor{
			Processes: []Process{trapped("a", script("a")), trapped("b", script("b"), "a"),
				trapped("c", "trap '' TERM; touch "+filepath.Join(dir, "trap-c")+"; while :; do sleep 0.05; done", "b")},
			LogDir: dir, StatusFile: filepath.Join(dir, "status.json"), Clock: clock.RealClock{}, Log: logr.Discard(),
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		g.Eventually(get(s, "c"), time.Minute).Should(HaveField("Ready", true))
		pid := get(s, "c")().PID
		cancel()
		g.Eventually(done, 4*stopGrace).Should(Receive(BeNil()))
		g.Expect(os.ReadFile(order)).To(BeEquivalentTo("b\na\n"))
		g.Expect(syscall.Kill(pid, 0)).To(Equal(syscall.ESRCH))
	})
	t.Run("When the status file is of a dead supervisor it should say so", func(t *testing.T) {
		g := NewWithT(t)
		start, err := StartTime(os.Getpid())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect((&Status{PID: os.Getpid(), StartTime: start}).Alive()).To(BeTrue())
		g.Expect((&Status{PID: os.Getpid(), StartTime: start + 1}).Alive()).To(BeFalse(), "another process has got the PID")
		g.Expect((&Status{}).Alive()).To(BeFalse())
	})
}

func TestChildEnv(t *testing.T) {
	t.Run("When the user's environment holds secrets and proxies it should not hand them down", func(t *testing.T) {
		g := NewWithT(t)
		got := childEnv([]string{"HOME=/root", "HTTPS_PROXY=http://p", "TOKEN=x", "PATH=/evil"})
		g.Expect(got).To(Equal([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}))
	})
}
