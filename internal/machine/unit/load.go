package unit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Folders are where units are looked for, the first that has one wins. Paths are absolute.
var Folders = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"}

const (
	maxUnits   = 256
	maxDropIns = 64
)

// validName is what systemd allows in the name of a unit.
var validName = regexp.MustCompile(`^[A-Za-z0-9:_.@\\-]{1,200}\.[a-z]+$`)

// ValidName tells whether a name may name a unit. It holds no slash.
func ValidName(name string) bool { return validName.MatchString(name) }

// errMasked is what read returns for a unit that is linked to the null device, or empty.
var errMasked = errors.New("the unit is masked")

// Load reads the named units and every service that they require or want. Problems are returned beside the units that can run:
// one bad unit must not keep the others from running.
func Load(root string, names []string) (map[string]*Unit, []error) {
	units := map[string]*Unit{}
	var problems []error
	seen := map[string]bool{}
	queue := slices.Clone(names)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] || !strings.HasSuffix(name, ".service") {
			continue
		}
		seen[name] = true
		if len(seen) > maxUnits {
			return units, append(problems, fmt.Errorf("more than %d units", maxUnits))
		}
		files, err := read(root, name)
		if errors.Is(err, errMasked) {
			continue
		}
		if err == nil {
			units[name], err = Parse(name, files...)
		}
		if err != nil {
			delete(units, name)
			// Something that is only wanted, or required and part of a system that we don't have, is no problem of its own.
			if !errors.Is(err, fs.ErrNotExist) || slices.Contains(names, name) {
				problems = append(problems, err)
			}
			continue
		}
		queue = append(queue, units[name].Requires...)
		queue = append(queue, units[name].Wants...)
	}
	return units, problems
}

// read returns a unit's file and its drop-ins.
func read(root, name string) ([][]byte, error) {
	if !ValidName(name) {
		return nil, fmt.Errorf("unit %q: not a name of a unit", name)
	}
	var main []byte
	err := fs.ErrNotExist
	for _, dir := range Folders {
		file := filepath.Join(root, dir, name)
		if target, lerr := os.Readlink(file); lerr == nil && path.Clean(target) == os.DevNull {
			return nil, errMasked
		}
		if main, err = readBounded(file); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("unit %s: reading it: %w", name, err)
	}
	if len(main) == 0 {
		return nil, errMasked
	}
	dropIns := map[string]string{} // the first folder wins for each name
	for _, dir := range Folders {
		found, err := filepath.Glob(filepath.Join(root, dir, name+".d", "*.conf"))
		if err != nil {
			return nil, fmt.Errorf("unit %s: listing drop-ins: %w", name, err)
		}
		for _, f := range found {
			if base := filepath.Base(f); dropIns[base] == "" {
				dropIns[base] = f
			}
		}
	}
	if len(dropIns) > maxDropIns {
		return nil, fmt.Errorf("unit %s: more than %d drop-ins", name, maxDropIns)
	}
	files := [][]byte{main}
	var bases []string
	for base := range dropIns {
		bases = append(bases, base)
	}
	slices.Sort(bases)
	for _, base := range bases {
		data, err := readBounded(dropIns[base])
		if err != nil {
			return nil, fmt.Errorf("unit %s: reading drop-in %s: %w", name, base, err)
		}
		files = append(files, data)
	}
	return files, nil
}

func readBounded(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxUnit || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file of at most %d bytes", file, maxUnit)
	}
	return os.ReadFile(file)
}

// edges gives, for each unit, the units of the set that must have started before it: those that it comes after, and then those that it requires. Cycles are
// broken at the edge that closes them, in the order of names, so that every unit runs; broken has these edges, with the later unit first.
func edges(units map[string]*Unit) (before map[string][]string, broken [][2]string) {
	before = map[string][]string{}
	add := func(later, earlier string) {
		edge := [2]string{later, earlier}
		switch {
		case units[later] == nil || units[earlier] == nil || later == earlier || slices.Contains(before[later], earlier):
		case !reaches(before, earlier, later):
			before[later] = append(before[later], earlier)
		case !slices.Contains(broken, edge):
			broken = append(broken, edge)
		}
	}
	var names []string
	for name := range units {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, dep := range units[name].After {
			add(name, dep)
		}
		for _, dep := range units[name].Before {
			add(dep, name)
		}
	}
	for _, name := range names {
		for _, dep := range units[name].Requires {
			add(name, dep)
		}
	}
	return before, broken
}

// reaches tells whether from comes, directly or not, after to.
func reaches(before map[string][]string, from, to string) bool {
	seen := map[string]bool{}
	stack := []string{from}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n == to {
			return true
		}
		if seen[n] {
			continue
		}
		seen[n] = true
		stack = append(stack, before[n]...)
	}
	return false
}
