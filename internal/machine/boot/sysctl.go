package boot

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sysctlFolders are where settings of the kernel are read from; of files with the same name the first counts.
var sysctlFolders = []string{"/etc/sysctl.d", "/run/sysctl.d", "/usr/lib/sysctl.d"}

// maxSysctl bounds a file with settings.
const maxSysctl = 64 << 10

// ownSettings are the prefixes of settings that a machine has for itself. All others belong to the kernel, which it shares with
// everything else on the management cluster's node.
var ownSettings = []string{"net/", "kernel/shm", "kernel/msg", "kernel/sem", "fs/mqueue/"}

// setting is one line of a file.
type setting struct {
	key, value string // the key with slashes
	optional   bool   // written with a leading "-"
}

// readSysctl reads the settings of all files in the order in which they apply.
func readSysctl(root string) []setting {
	files := map[string]string{}
	for _, dir := range sysctlFolders {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.conf"))
		if err != nil {
			continue // only a bad pattern fails
		}
		for _, f := range found {
			if base := filepath.Base(f); files[base] == "" {
				files[base] = f
			}
		}
	}
	var bases []string
	for base := range files {
		bases = append(bases, base)
	}
	slices.Sort(bases)
	var out []setting
	for _, base := range bases {
		info, err := os.Stat(files[base])
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxSysctl {
			continue
		}
		f, err := os.Open(files[base])
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if s, ok := parseSetting(lines.Text()); ok {
				out = append(out, s)
			}
		}
		f.Close()
	}
	return out
}

func parseSetting(line string) (setting, bool) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || line[0] == ';' {
		return setting{}, false
	}
	line, optional := strings.CutPrefix(line, "-")
	key, value, ok := strings.Cut(line, "=")
	key = strings.TrimSpace(key)
	if !strings.Contains(key, "/") {
		key = strings.ReplaceAll(key, ".", "/")
	}
	if !ok || !filepath.IsLocal(key) {
		return setting{}, false
	}
	// Its beginning tells whose setting it is, so it must not lead back: net/../kernel/panic is the kernel's.
	return setting{key: filepath.Clean(key), value: strings.TrimSpace(value), optional: optional}, true
}

// applySysctl writes the settings that are the machine's own below proc, which is /proc/sys.
func applySysctl(proc string, settings []setting, say func(string, ...any)) {
	var shared []string
	defer func() {
		if len(shared) > 0 {
			say("kernel settings left alone, because the kernel is shared: %s", strings.Join(shared, ", "))
		}
	}()
	for _, s := range settings {
		if !slices.ContainsFunc(ownSettings, func(p string) bool { return strings.HasPrefix(s.key, p) }) {
			shared = append(shared, strings.ReplaceAll(s.key, "/", "."))
			continue
		}
		if err := os.WriteFile(filepath.Join(proc, s.key), []byte(s.value), 0o644); err != nil && !s.optional {
			say("kernel setting %s: %v", s.key, err)
		}
	}
}
