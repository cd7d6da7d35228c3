package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Units says which units of a machine are to run.
type Units struct {
	// Enabled and Disabled are those that its configuration enables and disables.
	Enabled, Disabled []string
	// Before are those that configurations before have enabled, with those that went along. They are disabled unless this configuration or the operating system
	// enables them.
	Before []string
	// Links are paths of links that the configuration writes itself. They stay.
	Links []string
}

// Set makes and removes the links of units, below the folder that a machine's root is mounted at. What can't be enabled is said and left out, as at a first
// boot. It may be repeated after an error, and after a crash at any point.
func Set(root string, u Units, say func(format string, args ...any)) error {
	m, err := open(root, say)
	if err != nil {
		return err
	}
	defer m.root.Close()
	on := m.withAlso(u.Enabled)
	wanted, own := m.wanted(on)
	disabled := m.disabled(u, on)
	stay := map[string]bool{}
	for _, l := range u.Links {
		stay[strings.TrimPrefix(path.Clean(l), "/")] = true
	}
	have, err := m.links()
	if err != nil {
		return err
	}
	for _, l := range have {
		switch {
		case stay[l.path] || path.Base(wanted[l.path]) == path.Base(l.target):
			delete(wanted, l.path)
		case l.of(own) || l.of(disabled):
			if err := m.root.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("disabling units: %w", err)
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(wanted)) {
		if err := m.link(p, wanted[p]); err != nil {
			return fmt.Errorf("enabling units: %w", err)
		}
	}
	return nil
}

// WithAlso adds to units those that go along with them when they are enabled.
func WithAlso(root string, units []string, say func(format string, args ...any)) ([]string, error) {
	m, err := open(root, say)
	if err != nil {
		return nil, err
	}
	defer m.root.Close()
	return slices.Sorted(maps.Keys(m.withAlso(units))), nil
}

// wanted are the links that units have while they are enabled, with their targets. own are those of the units that don't come with the operating system: they
// have no other links.
func (m *machine) wanted(on map[string]bool) (links map[string]string, own map[string]bool) {
	links, own = map[string]string{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(on)) {
		in, err := m.unit(name)
		switch {
		case err != nil:
			m.say("unit %s is not enabled: %v", name, err)
		case isTemplate(name):
			m.say("unit %s is not enabled: it is a template; name an instance of it", name)
		default:
			own[name] = path.Dir(in.file) == unitFolder
			maps.Copy(links, in.links(name))
		}
	}
	return links, own
}

// disabled are the units that lose their links.
func (m *machine) disabled(u Units, on map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, name := range u.Disabled {
		out[name] = true
	}
	for name := range m.withAlso(slices.Concat(u.Before, u.Disabled)) {
		if m.goes(name) {
			out[name] = true
		}
	}
	maps.DeleteFunc(out, func(name string, _ bool) bool { return on[name] })
	return out
}

// link is one of the folder of units, or of a folder beside a unit with what that pulls in.
type link struct{ path, target string }

// of tells whether one of some units is pulled in by the link, or has another name by it.
func (l link) of(units map[string]bool) bool {
	name, target := path.Base(l.path), path.Base(l.target)
	if path.Dir(l.path) == unitFolder {
		return name != target && units[target]
	}
	return units[name] || units[target]
}

// links returns all links of units.
func (m *machine) links() ([]link, error) {
	var out []link
	endings := slices.Collect(maps.Values(pulls))
	folders := []string{unitFolder}
	for len(folders) > 0 {
		folder := folders[0]
		folders = folders[1:]
		entries, err := fs.ReadDir(m.root.FS(), folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading which units are enabled: %w", err)
		}
		for _, e := range entries {
			p := path.Join(folder, e.Name())
			switch {
			case e.Type()&fs.ModeSymlink != 0:
				target, err := m.root.Readlink(p)
				if err != nil {
					return nil, fmt.Errorf("reading which units are enabled: %w", err)
				}
				out = append(out, link{p, target})
			case e.IsDir() && folder == unitFolder && slices.Contains(endings, path.Ext(p)):
				folders = append(folders, p)
			}
		}
	}
	return out, nil
}

// link makes a link. Something else that is there has the place.
func (m *machine) link(p, target string) error {
	if err := m.root.MkdirAll(path.Dir(p), 0o755); err != nil {
		return err
	}
	err := m.root.Symlink(target, p)
	if errors.Is(err, fs.ErrExist) {
		m.say("link /%s to %s is not made: something else is there", p, target)
		return nil
	}
	return err
}
