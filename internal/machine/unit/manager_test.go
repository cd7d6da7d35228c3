package unit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/machine/reaper"
)

// A machine that also builds is slow; the bound only ends what hangs.
func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	os.Exit(m.Run())
}

// machine is a root with units, and a manager that runs them.
type machine struct {
	root string
	m    *Manager
	said *transcript
	done chan struct{}
	stop context.CancelFunc
}

type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (t *transcript) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *transcript) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// theReaper is one for all tests: there can be only one in a process.
var theReaper = sync.OnceValue(func() *reaper.Reaper {
	r := &reaper.Reaper{}
	go r.Run(context.Background())
	return r
})

func newMachine(t *testing.T, units map[string]string) *machine {
	t.Helper()
	g := NewWithT(t)
	root := t.TempDir()
	for name, content := range units {
		file := filepath.Join(root, "etc/systemd/system", name)
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(content), 0o644)).To(Succeed())
	}
	said := &transcript{}
	return &machine{root: root, said: said, done: make(chan struct{}), m: &Manager{
		Reaper: theReaper(), Clock: clock.RealClock{}, Say: said.say, LogDir: t.TempDir(), SocketDir: t.TempDir(), Root: root,
		// On a busy machine stopping takes its time. A unit that doesn't stop has a shorter TimeoutStopSec.
		Environment: []string{"PATH=/usr/bin:/bin", "OUT=" + root}, StopBound: time.Minute,
	}}
}

func (m *machine) start(t *testing.T, names ...string) {
	t.Helper()
	units, problems := Load(m.root, names)
	NewWithT(t).Expect(problems).To(BeEmpty())
	ctx, stop := context.WithCancel(t.Context())
	m.stop = stop
	go func() {
		defer close(m.done)
		_ = m.m.Run(ctx, units)
	}()
	t.Cleanup(func() { m.end(t) })
}

func (m *machine) end(t *testing.T) {
	t.Helper()
	m.stop()
	NewWithT(t).Eventually(m.done).Should(BeClosed())
}

func (m *machine) read(name string) func() string {
	return func() string {
		data, _ := os.ReadFile(filepath.Join(m.root, name))
		return string(data)
	}
}

func sh(script string) string { return "/bin/sh -c '" + script + "'" }

func TestManager(t *testing.T) {
	t.Run("When units depend on each other it should start them in order and stop them in reverse", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		long := func(name, more string) string {
			return "[Unit]\n" + more + "[Service]\nExecStartPre=" + sh("echo +"+name+" >>${OUT}/order") +
				"\nExecStart=" + sh("trap \"echo -"+name+" >>${OUT}/order; exit\" TERM; echo "+name+" >>${OUT}/trapped; while :; do sleep 0.05; done") + "\n"
		}
		m := newMachine(t, map[string]string{
			"a.service": long("a", ""),
			"b.service": long("b", "After=a.service\nRequires=a.service\n"),
			"c.service": long("c", "After=b.service\n"),
		})
		m.start(t, "b.service", "c.service") // a comes with b
		g.Eventually(func() []string { return strings.Fields(m.read("trapped")()) }).Should(ConsistOf("a", "b", "c"))
		m.end(t)
		g.Expect(strings.Fields(m.read("order")())).To(Equal([]string{"+a", "+b", "+c", "-c", "-b", "-a"}))
	})
	t.Run("When a service ends badly it should start again, and say what it printed", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		m := newMachine(t, map[string]string{"a.service": "[Service]\nExecStart=" + sh("echo x >>${OUT}/n; echo broken; exit 3") + "\nRestart=on-failure\nRestartSec=10ms\n"})
		m.start(t, "a.service")
		g.Eventually(m.read("n")).Should(HavePrefix("x\nx\nx\n"))
		g.Expect(m.said.text()).To(And(ContainSubstring("a.service: it exited with 3"), ContainSubstring("broken")))
	})
	t.Run("When a oneshot fails at first it should be waited for by what requires it", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		m := newMachine(t, map[string]string{
			"pull.service": "[Service]\nType=oneshot\nExecStart=" + sh("test -e ${OUT}/there") + "\nRestart=on-failure\nRestartSec=20ms\n",
			"run.service":  "[Unit]\nAfter=pull.service\nRequires=pull.service\n[Service]\nExecStart=" + sh("echo up >${OUT}/up; exec sleep 100") + "\n",
		})
		m.start(t, "run.service")
		g.Consistently(m.read("up")).WithTimeout(200 * time.Millisecond).Should(BeEmpty())
		g.Expect(os.WriteFile(filepath.Join(m.root, "there"), nil, 0o600)).To(Succeed())
		g.Eventually(m.read("up")).Should(Equal("up\n"))
	})
	t.Run("When a required unit fails for good it should not start the other", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		m := newMachine(t, map[string]string{
			"a.service": "[Service]\nType=oneshot\nExecStart=/bin/false\n",
			"b.service": "[Unit]\nRequires=a.service\n[Service]\nExecStart=/bin/true\n",
		})
		m.start(t, "b.service")
		g.Eventually(m.said.text).Should(ContainSubstring("b.service: not started, because a.service was not"))
	})
	for name, tc := range map[string]struct{ a, b, order, says string }{
		"When a unit requires one that it comes before it should not wait for it": {
			a: "Requires=b.service\nBefore=b.service\n", order: "a\nb\n", says: "a.service: does not wait for b.service, which waits for it"},
		"When units require each other one should start without waiting": {
			a: "Requires=b.service\n", b: "Requires=a.service\n", order: "b\na\n", says: "b.service: does not wait for a.service, which waits for it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			oneshot := func(name, more string) string {
				return "[Unit]\n" + more + "[Service]\nType=oneshot\nExecStart=" + sh("echo "+name+" >>${OUT}/order") + "\n"
			}
			m := newMachine(t, map[string]string{"a.service": oneshot("a", tc.a), "b.service": oneshot("b", tc.b)})
			m.start(t, "a.service", "b.service")
			g.Eventually(m.read("order")).Should(Equal(tc.order))
			g.Expect(m.said.text()).To(ContainSubstring(tc.says))
		})
	}
	t.Run("When a notify service never says ready it should be ended and tried again", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		m := newMachine(t, map[string]string{"a.service": "[Service]\nType=notify\nTimeoutStartSec=100ms\nExecStart=/bin/sleep 100\nRestart=always\n"})
		m.start(t, "a.service")
		g.Eventually(m.said.text).Should(ContainSubstring("it did not say within 100ms that it is ready; starting it again"))
	})
	t.Run("When a service ignores SIGTERM it should be killed within the bound", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		m := newMachine(t, map[string]string{"a.service": "[Service]\nTimeoutStopSec=200ms\nExecStart=" + sh("trap : TERM; echo x >${OUT}/trapped; while :; do sleep 0.05; done") + "\n"})
		m.start(t, "a.service")
		g.Eventually(m.read("trapped")).ShouldNot(BeEmpty())
		m.end(t)
		g.Expect(m.said.text()).To(ContainSubstring("did not stop within 200ms; killing it"))
	})
	t.Run("When an environment file appears between starts it should be read at the next", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		m := newMachine(t, map[string]string{"a.service": "[Service]\nEnvironmentFile=/env\nExecStart=" + sh("echo ${NAME} >${OUT}/name; exec sleep 100") + "\nRestart=always\n"})
		m.start(t, "a.service")
		g.Eventually(m.said.text).Should(ContainSubstring("reading EnvironmentFile /env"))
		// It appears whole: a start that read half of it would go on without the name.
		part := filepath.Join(m.root, "env.part")
		g.Expect(os.WriteFile(part, []byte("# comment\nNAME=\"worker 1\"\n"), 0o600)).To(Succeed())
		g.Expect(os.Rename(part, filepath.Join(m.root, "env"))).To(Succeed())
		g.Eventually(m.read("name")).Should(Equal("worker 1\n"))
	})
}

func TestLoad(t *testing.T) {
	t.Run("When units are bad, masked or absent it should run the others and name the problems", func(t *testing.T) {
		g := NewWithT(t)
		good := "[Service]\nExecStart=/bin/true\n"
		m := newMachine(t, map[string]string{
			"good.service": "[Unit]\nWants=nowhere.service network.target\n" + good, "good.service.d/10.conf": "[Service]\nEnvironment=A=1\n",
			"bad.service": "[Service]\nUser=x\n", "masked.service": "",
		})
		units, problems := Load(m.root, []string{"good.service", "bad.service", "masked.service", "absent.service", "../x.service", "some.timer"})
		g.Expect(units).To(HaveLen(1))
		g.Expect(units["good.service"].Environment).To(Equal([]string{"A=1"}))
		g.Expect(problems).To(ConsistOf(MatchError(ContainSubstring("bad.service")), MatchError(ContainSubstring("absent.service")), MatchError(ContainSubstring("not a name of a unit"))))
	})
}

func TestEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a.service", "b.service", "c.service", "d.service", "e.service"}
		pick := rapid.SliceOfN(rapid.SampledFrom(names), 0, 4)
		units := map[string]*Unit{}
		for _, n := range names {
			units[n] = &Unit{Name: n, After: pick.Draw(t, n+" after"), Before: pick.Draw(t, n+" before"), Requires: pick.Draw(t, n+" requires")}
		}
		before, broken := edges(units)
		for _, n := range names {
			for _, dep := range units[n].Requires {
				if dep != n && !slices.Contains(before[n], dep) && !slices.Contains(broken, [2]string{n, dep}) {
					t.Fatalf("%s requires %s, and neither waits for it nor is said not to", n, dep)
				}
			}
		}
		// Everything can start: taking away what waits for nothing leaves nothing, whatever cycles there were.
		started := map[string]bool{}
		for range names {
			for _, n := range names {
				ok := true
				for _, e := range before[n] {
					ok = ok && started[e]
				}
				started[n] = started[n] || ok
			}
		}
		if len(started) != len(names) || !started["a.service"] || !started["e.service"] || !started["b.service"] || !started["c.service"] || !started["d.service"] {
			t.Fatalf("some units wait for ever: %v", before)
		}
	})
}

func TestEdgesOfRequirements(t *testing.T) {
	g := NewWithT(t)
	// The order that is asked for counts more than the one that follows from a requirement, whatever the names.
	before, broken := edges(map[string]*Unit{
		"a.service": {Requires: []string{"z.service"}}, "y.service": {Requires: []string{"x.service"}, Before: []string{"x.service"}},
		"x.service": {}, "z.service": {After: []string{"a.service", "absent.service"}},
	})
	g.Expect(before).To(Equal(map[string][]string{"x.service": {"y.service"}, "z.service": {"a.service"}}))
	g.Expect(broken).To(Equal([][2]string{{"a.service", "z.service"}, {"y.service", "x.service"}}))
}

func TestRestartDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := time.Duration(rapid.IntRange(0, 60_000).Draw(t, "ms")) * time.Millisecond
		attempt := rapid.IntRange(0, 1_000_000).Draw(t, "attempt")
		d := restartDelay(wanted, attempt)
		if d < wanted || d < 100*time.Millisecond || d > max(wanted, maxRestartDelay) {
			t.Fatalf("%s for %s at attempt %d", d, wanted, attempt)
		}
	})
}
