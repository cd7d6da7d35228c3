package systemd

import (
	"maps"
	"path"
	"slices"
	"strings"

	"hcp.internal/platform/internal/machine/unit"
)

// pulls are the endings of the folders beside a unit with what it pulls in, by the setting that asks for it.
var pulls = map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires", "UpheldBy": ".upholds"}

// maxUnits bounds the units of a change. A configuration has at most 10,000.
const maxUnits = 20_000

// install is what the [Install] sections of a unit and of its drop-ins say.
type install struct {
	file     string              // of the unit, below the root
	settings map[string][]string // words, by the name of the setting
}

// unit looks at a unit. Its error is errNone or errMasked for one that can't be enabled.
func (m *machine) unit(name string) (*install, error) {
	l, ok := m.known[name]
	if !ok {
		l.in, l.err = m.lookAt(name)
		m.known[name] = l
	}
	return l.in, l.err
}

func (m *machine) lookAt(name string) (*install, error) {
	file, content, err := m.find(name)
	if err != nil {
		return nil, err
	}
	in := &install{file: file, settings: map[string][]string{}}
	in.add(string(content))
	var folders []string
	for _, of := range []string{name, template(name)} {
		for _, folder := range unit.Folders {
			if of != "" {
				folders = append(folders, path.Join(folder[1:], of+".d"))
			}
		}
	}
	dropIns := m.list(folders, ".conf")
	for _, n := range slices.Sorted(maps.Keys(dropIns)) {
		if content, ok := m.read(dropIns[n]); ok {
			in.add(string(content))
		}
	}
	return in, nil
}

// add takes the settings of one file. As systemd does, it passes over lines that it doesn't know.
func (in *install) add(content string) {
	section := ""
	for line := range strings.Lines(strings.NewReplacer("\\\r\n", " ", "\\\n", " ").Replace(content)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
		}
		key, value, ok := strings.Cut(line, "=")
		if section != "[Install]" || !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		key = strings.TrimSpace(key)
		if words := strings.Fields(value); len(words) == 0 {
			delete(in.settings, key) // the empty value empties the list
		} else {
			in.settings[key] = append(in.settings[key], words...)
		}
	}
}

// links are those that a unit has while it is enabled, with their targets. Names that have specifiers in them are left out, and so are other names of instances,
// which can't do without.
func (in *install) links(name string) map[string]string {
	out, target := map[string]string{}, "/"+in.file
	for setting, ending := range pulls {
		for _, by := range in.settings[setting] {
			if unit.ValidName(by) {
				out[path.Join(unitFolder, by+ending, name)] = target
			}
		}
	}
	for _, alias := range in.settings["Alias"] {
		if unit.ValidName(alias) && alias != name && path.Ext(alias) == path.Ext(name) && !strings.Contains(alias+name, "@") {
			out[path.Join(unitFolder, alias)] = target
		}
	}
	return out
}

// withAlso adds the units that go along with others, which [Install] names as well.
func (m *machine) withAlso(names []string) map[string]bool {
	out := map[string]bool{}
	queue := slices.Clone(names)
	for len(queue) > 0 && len(out) < maxUnits {
		name := queue[0]
		queue = queue[1:]
		if out[name] || !unit.ValidName(name) {
			continue
		}
		out[name] = true
		if in, err := m.unit(name); err == nil {
			queue = append(queue, in.settings["Also"]...)
		}
	}
	return out
}

// template is foo@.service for foo@bar.service; empty: the name is of no instance.
func template(name string) string {
	prefix, rest, ok := strings.Cut(name, "@")
	if ext := path.Ext(name); ok && rest != ext {
		return prefix + "@" + ext
	}
	return ""
}

// isTemplate tells whether a name is like foo@.service.
func isTemplate(name string) bool {
	_, rest, ok := strings.Cut(name, "@")
	return ok && rest == path.Ext(name)
}
