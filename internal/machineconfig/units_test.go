package machineconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/machine/boot"
)

// configOf is a configuration of units.
func configOf(units ...string) string {
	return `{"ignition":{"version":"3.2.0"},"systemd":{"units":[` + strings.Join(units, ",") + `]}}`
}

// service is a unit of a configuration, with more settings than its name and contents.
func service(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"contents":"[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"%s}`, name, more)
}

const (
	enabled  = `,"enabled":true`
	disabled = `,"enabled":false`
)

// local makes the daemon's machine one of platform Local, on which units run.
func local(t *testing.T, d *Daemon, units ...string) (disk string) {
	t.Helper()
	disk = filepath.Join(d.Root, "var")
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Join(disk, "lib/machine"), 0o700)).To(Succeed())
	g.Expect(boot.Mark(disk, units)).To(Succeed())
	return disk
}

func TestUnitsOfLocalMachines(t *testing.T) {
	for name, tc := range map[string]struct{ before, config, after string }{
		"When a unit is new it should run":                           {"kubelet.service", configOf(service("kubelet.service", enabled), service("agent.service", enabled)), "agent.service kubelet.service"},
		"When a unit is disabled it should run no more":              {"agent.service kubelet.service", configOf(service("kubelet.service", enabled), service("agent.service", disabled)), "kubelet.service"},
		"When a unit is in the configuration no more it should stop": {"agent.service kubelet.service", configOf(service("kubelet.service", enabled)), "kubelet.service"},
		"When a unit is masked it should run no more":                {"agent.service kubelet.service", configOf(service("kubelet.service", enabled), service("agent.service", enabled+`,"mask":true`)), "kubelet.service"},
		"When nothing changes it should run what it ran":             {"kubelet.service", configOf(service("kubelet.service", enabled)), "kubelet.service"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d, node, restarts := newDaemon(t, packed(t, tc.config))
			disk := local(t, d, strings.Fields(tc.before)...)
			g.Expect(d.Start(t.Context())).To(Succeed())
			g.Expect(boot.Marked(disk)).To(Equal(strings.Fields(tc.after)))
			g.Expect(node.annotations).To(HaveKeyWithValue(stateAnnotation, stateDone))
			g.Expect(*restarts).To(Equal(1))
		})
	}
	t.Run("When the list of units can't be written it should not restart, and finish once it can be", func(t *testing.T) {
		g := NewWithT(t)
		d, node, restarts := newDaemon(t, packed(t, configOf(service("agent.service", enabled))))
		disk := local(t, d, "old.service")
		inTheWay := filepath.Join(disk, "lib/machine/ignition-applied.new")
		g.Expect(os.Mkdir(inTheWay, 0o700)).To(Succeed())
		for range 4 {
			_, _ = d.step(t.Context())
			_ = d.Sleep(t.Context())
		}
		g.Expect(node.annotations).To(HaveKeyWithValue(stateAnnotation, stateDegraded))
		g.Expect(filepath.Join(d.Root, "etc/systemd/system/agent.service")).To(BeAnExistingFile(), "files come before the list")
		g.Expect(filepath.Join(d.Root, markPath)).NotTo(BeAnExistingFile(), "and the mark after it")
		g.Expect(*restarts).To(BeZero())

		g.Expect(os.Remove(inTheWay)).To(Succeed())
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(boot.Marked(disk)).To(Equal([]string{"agent.service"}))
		g.Expect(node.annotations).To(HaveKeyWithValue(stateAnnotation, stateDone))
	})
	t.Run("When it is killed before the mark it should come to the same list", func(t *testing.T) {
		g := NewWithT(t)
		config := configOf(service("agent.service", enabled))
		d, _, restarts := newDaemon(t, packed(t, config))
		disk := local(t, d, "old.service")
		g.Expect(d.write(t.Context(), []byte(config))).To(Succeed())
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(boot.Marked(disk)).To(Equal([]string{"agent.service"}))
		g.Expect(*restarts).To(Equal(1))
	})
}

func TestUnitsOfSystemd(t *testing.T) {
	link := func(d *Daemon, unit string) string {
		return filepath.Join(d.Root, "etc/systemd/system/multi-user.target.wants", unit)
	}
	// booted is a machine whose first boot has enabled kubelet.service and old.service.
	booted := func(t *testing.T, config string) (*Daemon, *fakeNode) {
		d, node, _ := newDaemon(t, packed(t, config))
		g := NewWithT(t)
		g.Expect(os.MkdirAll(filepath.Dir(link(d, "x")), 0o755)).To(Succeed())
		for _, unit := range []string{"kubelet.service", "old.service"} {
			file := "/etc/systemd/system/" + unit
			g.Expect(os.WriteFile(filepath.Join(d.Root, file), []byte("[Install]\nWantedBy=multi-user.target\n"), 0o600)).To(Succeed())
			g.Expect(os.Symlink(file, link(d, unit))).To(Succeed())
		}
		presets := filepath.Join(d.Root, "etc/systemd/system-preset/20-ignition.preset")
		g.Expect(os.MkdirAll(filepath.Dir(presets), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(presets, []byte("enable kubelet.service\nenable old.service\n"), 0o600)).To(Succeed())
		return d, node
	}
	t.Run("When units come, are disabled and go it should make and remove their links", func(t *testing.T) {
		g := NewWithT(t)
		d, node := booted(t, configOf(service("kubelet.service", enabled), service("agent.service", enabled)))
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(os.Readlink(link(d, "agent.service"))).To(Equal("/etc/systemd/system/agent.service"))
		g.Expect(os.Readlink(link(d, "kubelet.service"))).To(Equal("/etc/systemd/system/kubelet.service"))
		g.Expect(os.Lstat(link(d, "old.service"))).Error().To(MatchError(os.ErrNotExist), "only the configuration of the first boot has it")

		desire(t, d, "v3", configOf(service("kubelet.service", enabled), service("agent.service", disabled), service("other.service", enabled)))
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(os.Lstat(link(d, "agent.service"))).Error().To(MatchError(os.ErrNotExist))
		g.Expect(os.Readlink(link(d, "other.service"))).To(Equal("/etc/systemd/system/other.service"))

		desire(t, d, "v4", configOf(service("kubelet.service", enabled)))
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(os.Lstat(link(d, "other.service"))).Error().To(MatchError(os.ErrNotExist))
		g.Expect(os.Readlink(link(d, "kubelet.service"))).To(Equal("/etc/systemd/system/kubelet.service"))
		g.Expect(node.annotations).To(And(HaveKeyWithValue(currentConfig, "v4"), HaveKeyWithValue(stateAnnotation, stateDone)))
	})
	t.Run("When it stops amid the links and another configuration is desired it should leave no link of the one that it stopped at", func(t *testing.T) {
		g := NewWithT(t)
		d, node := booted(t, configOf(service("kubelet.service", enabled), service("agent.service", enabled), `{"name":"late.service","enabled":true,"contents":"[Install]\nWantedBy=z.target\n"}`))
		inTheWay := filepath.Join(d.Root, "etc/systemd/system/z.target.wants")
		g.Expect(os.WriteFile(inTheWay, nil, 0o600)).To(Succeed())
		for range 4 {
			_, _ = d.step(t.Context())
			_ = d.Sleep(t.Context())
		}
		g.Expect(node.annotations).To(HaveKeyWithValue(stateAnnotation, stateDegraded))
		g.Expect(os.Lstat(link(d, "agent.service"))).NotTo(BeNil(), "this part was done")

		desire(t, d, "v3", configOf(service("kubelet.service", enabled)))
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(os.Lstat(link(d, "agent.service"))).Error().To(MatchError(os.ErrNotExist))
		g.Expect(os.Lstat(link(d, "old.service"))).Error().To(MatchError(os.ErrNotExist))
		g.Expect(os.ReadFile(filepath.Join(d.Root, enabledPath))).To(BeEquivalentTo("kubelet.service\n"))
	})
	t.Run("When a unit was masked and is enabled it should be masked no more", func(t *testing.T) {
		g := NewWithT(t)
		d, _ := booted(t, configOf(`{"name":"os.service","mask":true}`))
		vendor := filepath.Join(d.Root, "usr/lib/systemd/system/os.service")
		g.Expect(os.MkdirAll(filepath.Dir(vendor), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(vendor, []byte("[Install]\nWantedBy=multi-user.target\n"), 0o600)).To(Succeed())
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(os.Readlink(filepath.Join(d.Root, "etc/systemd/system/os.service"))).To(Equal("/dev/null"))

		desire(t, d, "v3", configOf(`{"name":"os.service","enabled":true}`))
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(os.Lstat(filepath.Join(d.Root, "etc/systemd/system/os.service"))).Error().To(MatchError(os.ErrNotExist))
		g.Expect(os.Readlink(link(d, "os.service"))).To(Equal("/usr/lib/systemd/system/os.service"))
	})
	t.Run("When the configuration writes a link of a unit itself it should leave that alone", func(t *testing.T) {
		g := NewWithT(t)
		d, _ := booted(t, `{"ignition":{"version":"3.2.0"},"storage":{"links":[{"path":"/etc/systemd/system/multi-user.target.wants/old.service","target":"/etc/systemd/system/old.service"}]}}`)
		g.Expect(d.Start(t.Context())).To(Succeed())
		g.Expect(os.Lstat(link(d, "old.service"))).NotTo(BeNil())
		g.Expect(os.Lstat(link(d, "kubelet.service"))).Error().To(MatchError(os.ErrNotExist))
	})
}
