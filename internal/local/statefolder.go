package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/preflight"
)

// markerText is for a person who finds the marker.
const markerText = `This folder belongs to the local mode of hypershift: "hypershift local down" removes it with everything in it.
Keep nothing here that you need, and leave this file.
`

// maxLinks is how many links are followed, as many as the kernel follows.
const maxLinks = 40

// RealPath is where a state folder is, by way of all links in its path and the one that it may be itself: mounts are known by their real path, and what is below
// a link would stay when that is removed. dir is absolute. What doesn't exist yet is put behind what does.
func RealPath(dir string) string {
	for range maxLinks {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return real
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return dir
		}
		parent = RealPath(parent)
		target, err := os.Readlink(dir)
		switch {
		case err != nil: // no link: nothing, or nothing that may be looked at
			return filepath.Join(parent, filepath.Base(dir))
		case !filepath.IsAbs(target):
			target = filepath.Join(parent, target)
		}
		dir = target // a link to what "up" makes, or "down" has removed
	}
	return dir
}

// admit marks a state folder on a machine that lacks nothing.
func admit(p components.Paths, facts preflight.Facts) error {
	if err := preflight.Check(facts); err != nil {
		return err
	}
	return claim(p)
}

// claim marks a state folder as local mode's own. It is called before anything else comes into it, so that "down" knows it after a crash on any line.
func claim(p components.Paths) error {
	if marked(p) {
		return nil
	}
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return fmt.Errorf("creating the state folder: %w", err)
	}
	// Not by way of a file beside it, which would be the first one. The file counts as soon as it is there, whatever is in it.
	if err := os.WriteFile(p.Marker(), []byte(markerText), 0o600); err != nil {
		return fmt.Errorf("marking the state folder: %w", err)
	}
	return nil
}

// marked tells whether a folder has been claimed.
func marked(p components.Paths) bool {
	info, err := os.Lstat(p.Marker())
	return err == nil && info.Mode().IsRegular()
}

// foreign is what "up" finds in a folder that is not local mode's own: the names of files of somebody else. None: it may use the folder.
func foreign(p components.Paths, current *Instance) ([]string, error) {
	entries, err := leftInside(p)
	if err != nil || len(entries) == 0 || owned(p, current) || begunBefore(p, entries) {
		return nil, err
	}
	return entries, nil
}

// safeToRemove refuses a folder that is not local mode's own: a typing error must not cost a home directory.
func safeToRemove(p components.Paths, current *Instance) error {
	if filepath.Clean(p.State) == "/" {
		return errors.New("--state-dir / is the whole machine, so nothing was removed; give the right folder")
	}
	entries, err := leftInside(p)
	if err != nil || len(entries) == 0 || owned(p, current) {
		return err
	}
	return fmt.Errorf("%s holds %s but not the file %s, which local mode puts into each of its folders, so nothing was removed; give the right folder with --state-dir, or remove this one yourself",
		p.State, preflight.Few(entries), filepath.Base(p.Marker()))
}

// owned tells whether everything in a folder may go with "down".
func owned(p components.Paths, current *Instance) bool {
	return marked(p) || current != nil && current.StateDir == p.State || madeBefore(p)
}

// leftInside are the names in a folder without what a killed look at the machine left in it, and without what a new file system has at its root; none when
// there is no folder.
func leftInside(p components.Paths) ([]string, error) {
	entries, err := os.ReadDir(p.State)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the state folder: %w", err)
	}
	var names []string
	for _, e := range entries {
		if scratch, reserved := strings.HasPrefix(e.Name(), preflight.Scratch), e.Name() == "lost+found"; scratch || reserved && isEmpty(filepath.Join(p.State, e.Name())) {
			continue
		}
		names = append(names, e.Name())
	}
	return names, nil
}

func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// madeBefore recognises a folder of a version that marked none: by what it wrote down of the machine, together with something that only it makes. Neither
// is enough: others describe hosts and keep authorities, too.
func madeBefore(p components.Paths) bool {
	if !remembersHost(p) {
		return false
	}
	if cfg, err := readConfig(p); err == nil && cfg.KubernetesBinary != "" {
		return true
	}
	return slices.ContainsFunc([]string{filepath.Join(p.PKI(), "ca.crt"), p.Conf("kubelet.yaml")}, func(file string) bool {
		info, err := os.Lstat(file)
		return err == nil && info.Mode().IsRegular()
	})
}

// begunBefore recognises a folder in which a version that marked none was interrupted early: it holds nothing but its first files.
func begunBefore(p components.Paths, entries []string) bool {
	for _, name := range entries {
		switch name {
		case filepath.Base(p.HostState()):
			if !remembersHost(p) {
				return false
			}
		case filepath.Base(p.Logs()):
			logs, err := os.ReadDir(p.Logs())
			if err != nil || len(logs) != 1 || logs[0].Name() != "packages.log" {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// remembersHost tells whether a folder holds kernel settings as rememberHost writes them down.
func remembersHost(p components.Paths) bool {
	data, err := os.ReadFile(p.HostState())
	h := hostState{}
	if err != nil || json.Unmarshal(data, &h) != nil {
		return false
	}
	_, ok := h.Sysctls[hostSettings[0].key] // every Linux has it
	return ok
}
