package packages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// debian is a machine in a folder. Its programs are scripts that come first on the PATH and write down how they were called.
type debian struct {
	t *testing.T
	machine
	Installer

	mu   sync.Mutex
	said []string
}

// newDebian has the programs of Needed but those of lacking, and a systemd.
func newDebian(t *testing.T, lacking ...string) *debian {
	t.Helper()
	dir := t.TempDir()
	d := &debian{t: t, machine: machine{root: filepath.Join(dir, "root")}}
	d.Installer = Installer{LogDir: filepath.Join(dir, "state", "logs"), Note: filepath.Join(dir, "state", "brought"), Say: func(format string, args ...any) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.said = append(d.said, fmt.Sprintf(format, args...))
	}}
	for _, n := range Needed {
		lacks := false
		for _, l := range lacking {
			lacks = lacks || n.Package == l
		}
		if !lacks {
			d.write(n.Program, "")
		}
	}
	d.write("/run/systemd/system/x", "")
	d.write("/var/lib/dpkg/updates/tmp.i", "")
	t.Setenv("D", d.root)
	t.Setenv("PATH", d.path("/fake")+":"+os.Getenv("PATH"))
	d.program("apt-get", "")
	d.program("dpkg", "")
	d.program("systemctl", "")
	return d
}

func (d *debian) path(name string) string { return filepath.Join(d.root, name) }

func (d *debian) write(name, content string) {
	d.t.Helper()
	g := NewWithT(d.t)
	g.Expect(os.MkdirAll(filepath.Dir(d.path(name)), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(d.path(name), []byte(content), 0o700)).To(Succeed())
}

// program gives a script a body. "$D" is the root of the machine; that of apt-get, which is what comes without --download-only, installs everything at its end.
func (d *debian) program(name, body string) {
	d.t.Helper()
	script := "#!/bin/sh\necho \"" + name + " $*\" >> \"$D/calls\"\n" + body + "\n"
	if name == "apt-get" {
		script += "case \"$*\" in *--download-only*|*update*) exit 0;; esac\n"
		for _, n := range Needed {
			script += fmt.Sprintf("mkdir -p \"$D%s\"; : > \"$D%s\"\n", filepath.Dir(n.Program), n.Program)
		}
	}
	d.write("/fake/"+name, script)
}

// calls are what was called since the last look, without what apt-get is told each time.
func (d *debian) calls() []string {
	data, _ := os.ReadFile(d.path("calls"))
	_ = os.Remove(d.path("calls"))
	text := strings.NewReplacer(" -o DPkg::Lock::Timeout=120", "", " --yes --no-install-recommends", "").Replace(string(data))
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func (d *debian) sayings() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.said, "; ")
}

// start runs the installer until it ends, or the function that it returns is called.
func (d *debian) start() (ended <-chan error, stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	go func() { done <- d.run(ctx, d.machine) }()
	return done, cancel
}

const (
	off  = "systemctl disable --now containerd.service"
	wait = `while [ ! -e "$D/go" ]; do sleep 0.02; done`
)

func TestRun(t *testing.T) {
	t.Run("When packages are missing it should fetch and install them, and switch off the service that one brings", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "containerd", "runc")
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()).To(Equal([]string{"apt-get install containerd runc --download-only", "apt-get install containerd runc", off}))
		g.Expect(d.Note).NotTo(BeAnExistingFile())
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()).To(BeEmpty(), "again")
	})
	t.Run("When containerd was there before it should leave its service alone", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "runc")
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()).To(Equal([]string{"apt-get install runc --download-only", "apt-get install runc"}))
	})
	t.Run("When the index is old it should fetch a new one and try once more", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "runc")
		d.program("apt-get", `case "$*" in *update*) touch "$D/new";; *) [ -e "$D/new" ] || exit 100;; esac`)
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()).To(Equal([]string{"apt-get install runc --download-only", "apt-get update", "apt-get install runc --download-only", "apt-get install runc"}))
	})
	t.Run("When nothing can be installed it should say where the output is, and leave a containerd alone that somebody installs then", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "containerd")
		d.program("apt-get", "exit 100")
		g.Expect(d.run(t.Context(), d.machine)).To(MatchError(ContainSubstring("packages.log")))
		d.write("/usr/bin/containerd", "")
		d.calls()
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()).To(BeEmpty())
	})
}

func TestStopped(t *testing.T) {
	t.Run("When it is stopped while packages are installed apt-get should be let through, and the service be switched off", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "containerd")
		d.program("apt-get", `case "$*" in *--download-only*) ;; *) touch "$D/configuring"; `+wait+`;; esac`)
		ended, stop := d.start()
		g.Eventually(d.path("configuring")).Should(BeAnExistingFile())
		stop()
		g.Consistently(ended).WithTimeout(300 * time.Millisecond).ShouldNot(Receive())
		g.Expect(d.sayings()).To(ContainSubstring("stopping once apt-get is through"))
		d.write("go", "")
		g.Eventually(ended).Should(Receive(MatchError(context.Canceled)))
		g.Expect(d.path("/usr/bin/containerd")).To(BeAnExistingFile())
		g.Expect(d.calls()).To(HaveExactElements(ContainSubstring("--download-only"), Equal("apt-get install containerd"), Equal(off)))
		g.Expect(d.Note).NotTo(BeAnExistingFile())
	})
	t.Run("When it is stopped while packages are fetched it should end at once, and install nothing", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "containerd")
		d.program("apt-get", `touch "$D/fetching"; exec sleep 600`)
		ended, stop := d.start()
		g.Eventually(d.path("fetching")).Should(BeAnExistingFile())
		stop()
		g.Eventually(ended).Should(Receive(MatchError(context.Canceled)))
		g.Expect(d.calls()).To(Equal([]string{"apt-get install containerd --download-only"}))
	})
	t.Run("When an earlier run was killed after containerd came it should switch its service off now, and only once", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "containerd")
		g.Expect(d.note()).To(Succeed()) // what comes before apt-get
		d.write("/usr/bin/containerd", "")
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()).To(Equal([]string{off}))
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()).To(BeEmpty())
	})
	t.Run("When apt-get runs the note should be there, so that a run that is killed leaves it", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "containerd")
		d.program("apt-get", `[ -e "`+d.Note+`" ] || exit 100`)
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
	})
	t.Run("When the service can't be switched off it should say so, and try again the next time", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "containerd")
		d.program("systemctl", "echo no bus; exit 1")
		g.Expect(d.run(t.Context(), d.machine)).To(MatchError(And(ContainSubstring("containerd service"), ContainSubstring("no bus"))))
		d.program("systemctl", "")
		d.calls()
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()).To(Equal([]string{off}))
	})
}

func TestInterruptedDpkg(t *testing.T) {
	t.Run("When dpkg was cut short it should complete that first, because apt-get refuses to work then", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "runc")
		d.write("/var/lib/dpkg/updates/0001", "")
		d.program("dpkg", `rm "$D/var/lib/dpkg/updates/0001"`)
		d.program("apt-get", `[ ! -e "$D/var/lib/dpkg/updates/0001" ] || exit 100`)
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
		g.Expect(d.calls()[0]).To(Equal("dpkg --configure -a"))
	})
	t.Run("When another program installs something just now it should wait for that", func(t *testing.T) {
		g := NewWithT(t)
		d := newDebian(t, "runc")
		d.write("/var/lib/dpkg/updates/0001", "")
		d.program("dpkg", "exit 2") // the lock is held
		g.Expect(d.run(t.Context(), d.machine)).To(Succeed())
	})
}
