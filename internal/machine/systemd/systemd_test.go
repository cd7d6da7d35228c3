package systemd

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

// rooted makes a machine's root with some files; a content that begins with "->" is a link.
func rooted(t interface{ Fatal(...any) }, dir string, files map[string]string) {
	for file, content := range files {
		file = filepath.Join(dir, file)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if target, ok := strings.CutPrefix(content, "->"); err == nil && ok {
			err = os.Symlink(target, file)
		} else if err == nil {
			err = os.WriteFile(file, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// linksOf are the links below the folder of units, with their targets.
func linksOf(t interface{ Fatal(...any) }, dir string) map[string]string {
	out := map[string]string{}
	top := filepath.Join(dir, unitFolder)
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		out[strings.TrimPrefix(p, top+"/")], err = os.Readlink(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func quiet(string, ...any) {}

const wanted = "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"

func TestSet(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		units Units
		want  map[string]string
	}{
		"When a unit of a configuration is enabled it should be linked": {
			map[string]string{"etc/systemd/system/a.service": wanted}, Units{Enabled: []string{"a.service"}},
			map[string]string{"multi-user.target.wants/a.service": "/etc/systemd/system/a.service"},
		},
		"When a unit of the operating system is enabled its own file should be the target": {
			map[string]string{"usr/lib/systemd/system/a.service": wanted, "etc/systemd/system/a.service.d/10-x.conf": "[Install]\nWantedBy=\nRequiredBy=b.service\n"}, Units{Enabled: []string{"a.service"}},
			map[string]string{"b.service.requires/a.service": "/usr/lib/systemd/system/a.service"},
		},
		"When a unit has another name and one that goes along both should be enabled": {
			map[string]string{"usr/lib/systemd/system/a.service": wanted + "Alias=b.service\nAlso=a.socket\n", "usr/lib/systemd/system/a.socket": "[Install]\nWantedBy=sockets.target\n"}, Units{Enabled: []string{"a.service"}},
			map[string]string{"multi-user.target.wants/a.service": "/usr/lib/systemd/system/a.service", "b.service": "/usr/lib/systemd/system/a.service", "sockets.target.wants/a.socket": "/usr/lib/systemd/system/a.socket"},
		},
		"When an instance is enabled its template should be the target": {
			map[string]string{"etc/systemd/system/a@.service": wanted}, Units{Enabled: []string{"a@1.service"}},
			map[string]string{"multi-user.target.wants/a@1.service": "/etc/systemd/system/a@.service"},
		},
		"When a unit can't be enabled the others should be": {
			map[string]string{"etc/systemd/system/a.service": wanted, "etc/systemd/system/b.service": "->/dev/null", "etc/systemd/system/c@.service": wanted, "etc/systemd/system/d.service": "->/usr/lib/x.service"},
			Units{Enabled: []string{"none.service", "b.service", "c@.service", "../../x.service", "d.service", "a.service"}},
			map[string]string{"multi-user.target.wants/a.service": "/etc/systemd/system/a.service", "b.service": "/dev/null", "d.service": "/usr/lib/x.service"},
		},
		"When a unit is disabled all that leads to it should go, but not what others have": {
			map[string]string{"usr/lib/systemd/system/a.service": wanted, "etc/systemd/system/multi-user.target.wants/a.service": "->/usr/lib/systemd/system/a.service", "etc/systemd/system/x.target.requires/a.service": "->../a.service",
				"etc/systemd/system/b.service": "->/usr/lib/systemd/system/a.service", "etc/systemd/system/multi-user.target.wants/c.service": "->/x/c.service"},
			Units{Disabled: []string{"a.service"}},
			map[string]string{"multi-user.target.wants/c.service": "/x/c.service"},
		},
		"When a unit of the operating system is in the configuration no more its presets should decide": {
			map[string]string{"usr/lib/systemd/system/on.service": wanted, "usr/lib/systemd/system/off.service": wanted, "etc/systemd/system/own.service": wanted,
				"etc/systemd/system/multi-user.target.wants/on.service": "->/usr/lib/systemd/system/on.service", "etc/systemd/system/multi-user.target.wants/off.service": "->/usr/lib/systemd/system/off.service",
				"etc/systemd/system/multi-user.target.wants/own.service": "->/etc/systemd/system/own.service",
				"etc/systemd/system-preset/20-ignition.preset":           "enable off.service\n", "usr/lib/systemd/system-preset/90-os.preset": "# of the system\nenable on.*\nenable own.service\n", "usr/lib/systemd/system-preset/99-rest.preset": "disable *\n"},
			Units{Before: []string{"on.service", "off.service", "own.service"}},
			map[string]string{"multi-user.target.wants/on.service": "/usr/lib/systemd/system/on.service"},
		},
		"When a unit is wanted by another target now it should be linked there alone": {
			map[string]string{"etc/systemd/system/a.service": "[Install]\nWantedBy=graphical.target\n", "etc/systemd/system/multi-user.target.wants/a.service": "->/etc/systemd/system/a.service"},
			Units{Enabled: []string{"a.service"}, Before: []string{"a.service"}},
			map[string]string{"graphical.target.wants/a.service": "/etc/systemd/system/a.service"},
		},
		"When a link is the configuration's own it should stay": {
			map[string]string{"etc/systemd/system/a.service": wanted, "etc/systemd/system/multi-user.target.wants/a.service": "->/etc/systemd/system/a.service"},
			Units{Before: []string{"a.service"}, Links: []string{"/etc/systemd/system/./multi-user.target.wants/a.service"}},
			map[string]string{"multi-user.target.wants/a.service": "/etc/systemd/system/a.service"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, dir := NewWithT(t), t.TempDir()
			rooted(t, dir, tc.files)
			g.Expect(Set(dir, tc.units, t.Logf)).To(Succeed())
			g.Expect(linksOf(t, dir)).To(Equal(tc.want))
			g.Expect(Set(dir, tc.units, t.Logf)).To(Succeed())
			g.Expect(linksOf(t, dir)).To(Equal(tc.want), "a second time changes nothing")
		})
	}
}

func TestFirstBoot(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	g.Expect(FirstBoot(dir, quiet)).To(BeEmpty(), "When Ignition has enabled nothing")
	rooted(t, dir, map[string]string{"etc/systemd/system-preset/20-ignition.preset": "enable a.service\nenable b@.service 1 2\ndisable c.service\n"})
	g.Expect(FirstBoot(dir, quiet)).To(Equal([]string{"a.service", "b@1.service", "b@2.service"}))
}

// When configurations follow each other, and some of them in part, a machine should have the links of a new one with the last.
func TestSetComesToTheSame(t *testing.T) {
	base := t.TempDir()
	names := []string{"a.service", "b.service", "c.service", "d@1.service", "e.socket"}
	install := rapid.SampledFrom([]string{"WantedBy=multi-user.target\n", "WantedBy=x.target y.target\n", "RequiredBy=b.service\n", "WantedBy=multi-user.target\nAlso=e.socket\n", "Alias=f.service\n", "UpheldBy=x.target\n", ""})
	machines := 0
	newMachine := func() string {
		machines++
		return filepath.Join(base, fmt.Sprint(machines))
	}
	rapid.Check(t, func(t *rapid.T) {
		old := newMachine()
		rooted(t, old, map[string]string{"etc/systemd/system/x": ""})
		var before []string
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			files, units := map[string]string{}, Units{Before: before}
			for _, name := range names {
				file := cmp.Or(template(name), name)
				files["etc/systemd/system/"+file] = "[Install]\n" + install.Draw(t, "install of "+name)
				switch rapid.IntRange(0, 2).Draw(t, name) {
				case 0:
					units.Enabled = append(units.Enabled, name)
				case 1:
					units.Disabled = append(units.Disabled, name)
				}
			}
			rooted(t, old, files)
			along, err := WithAlso(old, units.Enabled, quiet)
			if err != nil {
				t.Fatal(err)
			}
			was := linksOf(t, old)
			set(t, old, units)
			if rapid.Bool().Draw(t, "in part") {
				part(t, old, was)
				before = slices.Concat(before, along) // as whoever calls it remembers
				if rapid.Bool().Draw(t, "and given up") {
					continue
				}
				units.Before = before
				set(t, old, units)
			}
			before = along
			fresh := newMachine()
			rooted(t, fresh, files)
			set(t, fresh, Units{Enabled: units.Enabled})
			NewWithT(t).Expect(linksOf(t, old)).To(Equal(linksOf(t, fresh)))
		}
	})
}

func set(t *rapid.T, dir string, units Units) {
	if err := Set(dir, units, quiet); err != nil {
		t.Fatal(err)
	}
}

// part has some of the links that a change made or removed be as they were.
func part(t *rapid.T, dir string, was map[string]string) {
	is := linksOf(t, dir)
	for _, p := range slices.Sorted(maps.Keys(union(was, is))) {
		if was[p] == is[p] || !rapid.Bool().Draw(t, "undo "+p) {
			continue
		}
		if is[p] != "" {
			if err := os.Remove(filepath.Join(dir, unitFolder, p)); err != nil {
				t.Fatal(err)
			}
		}
		if was[p] != "" {
			rooted(t, dir, map[string]string{unitFolder + "/" + p: "->" + was[p]})
		}
	}
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// When systemctl is at hand it should make and remove the same links.
func TestAsSystemctl(t *testing.T) {
	if _, err := exec.LookPath("systemctl"); err != nil {
		t.Skip("there is no systemctl")
	}
	files := map[string]string{
		"etc/systemd/system/a.service":                "[Install]\nWantedBy=multi-user.target \\\n  x.target\n# WantedBy=no.target\nAlias=a2.service\n",
		"usr/lib/systemd/system/b.service":            "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\nAlso=b.socket\n",
		"usr/lib/systemd/system/b.socket":             "[Socket]\nListenStream=1\n[Install]\nWantedBy=sockets.target\n",
		"etc/systemd/system/b.service.d/10-more.conf": "[Install]\nRequiredBy=x.service\n",
		"etc/systemd/system/c@.service":               "[Install]\nWantedBy=multi-user.target\n",
		"etc/systemd/system/d.service":                "[Service]\nExecStart=/bin/true\n",
	}
	names := []string{"a.service", "b.service", "c@1.service", "c@2.service", "d.service"}
	g, ours, theirs := NewWithT(t), t.TempDir(), t.TempDir()
	rooted(t, ours, files)
	rooted(t, theirs, files)
	systemctl := func(verb string, names ...string) {
		out, err := exec.CommandContext(t.Context(), "systemctl", append([]string{"--root=" + theirs, verb}, names...)...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
	systemctl("enable", names...)
	g.Expect(Set(ours, Units{Enabled: names}, t.Logf)).To(Succeed())
	g.Expect(linksOf(t, ours)).To(Equal(linksOf(t, theirs)))
	g.Expect(linksOf(t, ours)).To(HaveKey(path.Join("sockets.target.wants", "b.socket")))

	systemctl("disable", "a.service", "c@1.service")
	g.Expect(Set(ours, Units{Enabled: []string{"b.service", "c@2.service"}, Disabled: []string{"a.service", "c@1.service"}, Before: names}, t.Logf)).To(Succeed())
	g.Expect(linksOf(t, ours)).To(Equal(linksOf(t, theirs)))
}
