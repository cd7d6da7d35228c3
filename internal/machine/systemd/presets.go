package systemd

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// ofIgnition is the file where Ignition notes at the first boot which units are enabled and disabled.
const ofIgnition = "20-ignition.preset"

// presetFolders, below the root, are where presets are read from; of files with the same name the first counts.
var presetFolders = []string{"etc/systemd/system-preset", "run/systemd/system-preset", "usr/local/lib/systemd/system-preset", "usr/lib/systemd/system-preset"}

// preset is a line that says which units are enabled on a new machine.
type preset struct {
	verb, pattern string
	instances     []string // of the template that pattern is then
}

func presets(content []byte) (out []preset) {
	for line := range strings.Lines(string(content)) {
		if words := strings.Fields(line); len(words) > 1 && !strings.HasPrefix(words[0], "#") && !strings.HasPrefix(words[0], ";") {
			out = append(out, preset{words[0], words[1], words[2:]})
		}
	}
	return out
}

// units are those that a line names without saying more than their names, or those of a template.
func (p preset) units() []string {
	if len(p.instances) == 0 {
		return []string{p.pattern}
	}
	var out []string
	for _, instance := range p.instances {
		out = append(out, strings.Replace(p.pattern, "@", "@"+instance, 1))
	}
	return out
}

func (p preset) names(name string) bool {
	if len(p.instances) > 0 {
		return slices.Contains(p.units(), name)
	}
	ok, err := path.Match(p.pattern, name)
	return err == nil && ok
}

// FirstBoot returns the units that Ignition enabled at a machine's first boot.
func FirstBoot(root string, say func(format string, args ...any)) ([]string, error) {
	m, err := open(root, say)
	if err != nil {
		return nil, err
	}
	defer m.root.Close()
	content, _ := m.read(path.Join(presetFolders[0], ofIgnition)) // without it, it enabled none
	var out []string
	for _, p := range presets(content) {
		if p.verb == "enable" {
			out = append(out, p.units()...)
		}
	}
	return out, nil
}

// disabledByPreset tells whether the operating system's own presets disable a unit. What they don't name is enabled, says systemd.
func (m *machine) disabledByPreset(name string) bool {
	files := m.list(presetFolders, ".preset")
	delete(files, ofIgnition)
	for _, n := range slices.Sorted(maps.Keys(files)) {
		content, _ := m.read(files[n])
		for _, p := range presets(content) {
			if p.names(name) {
				return p.verb == "disable"
			}
		}
	}
	return false
}

// goes tells whether a unit is to be disabled that a configuration before has enabled, and the present one doesn't. A unit that is a configuration's own is;
// with one of the operating system it is as on a new machine.
func (m *machine) goes(name string) bool {
	in, err := m.unit(name)
	return err != nil || path.Dir(in.file) == unitFolder || m.disabledByPreset(name)
}
