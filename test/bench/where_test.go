//go:build bench

package bench

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"hcp.internal/platform/internal/local/components"
)

// usedBy is how many CPU seconds the processes of the local cluster that live have used so far, with those children of theirs that have
// ended, by what they are: programs of the node and of the management cluster by their name, programs in pods with "pod: " before it.
type usedBy map[string]float64

func whoUsed() (usedBy, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	used := usedBy{}
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(groups, []byte("/"+components.CgroupRoot)) {
			continue // it has ended meanwhile, or is somebody else's
		}
		dir := filepath.Dir(file)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		seconds, err := cpuWithChildren(pid)
		name := program(dir)
		if err != nil || name == "" {
			continue
		}
		if bytes.Contains(groups, []byte("/pod")) {
			name = "pod: " + name
		}
		used[name] += seconds
	}
	return used, nil
}

// printWhere shows where CPU seconds went between two looks; the rest was used by processes that have come and gone.
func printWhere(title string, before, after usedBy, total, clusters float64) {
	t := newTable(title, "program", "CPU s per hosted cluster", "share")
	grown := usedBy{}
	rest := total
	for name, seconds := range after {
		grown[name] = seconds - before[name]
		rest -= grown[name]
	}
	grown["processes that came and went"] = rest
	names := slices.SortedFunc(maps.Keys(grown), func(a, b string) int { return cmp.Or(cmp.Compare(grown[b], grown[a]), cmp.Compare(a, b)) })
	for _, name := range names {
		if grown[name] >= total/200 {
			t.add(name, seconds(grown[name]/clusters), percent(grown[name]/total*100))
		}
	}
	t.print()
}
