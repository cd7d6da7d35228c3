package floors

import (
	"path/filepath"
	"strings"
	"testing"
)

// makesFiles are the functions by which a file comes to be or grows.
var makesFiles = []struct{ of, name string }{
	{"os", "WriteFile"}, {"os", "Create"}, {"os", "CreateTemp"}, {"os", "MkdirTemp"}, {"os", "OpenFile"}, {"os", "Mkdir"}, {"os", "MkdirAll"}, {"atomicfile", "Write"},
}

// onDisk are the rooms that write files, with what becomes of them when the disk is full. Operators are not among them: a full disk of theirs stops nothing.
var onDisk = map[string]string{
	"internal/cli":                 "a command of a person, who reads the error",
	"internal/local":               "a command of a person, who reads the error",
	"internal/machine":             "a machine, whose disk is judged by its health check",
	"internal/machineconfig":       "a machine, whose disk is judged by its health check",
	"internal/sidecar":             "a sidecar: fails, is started again, and its container says why",
	"internal/etcdbackup":          "a Job: fails, its condition says why, and no half of a backup is taken for one",
	"internal/atomicfile":          "what its callers say here",
	"internal/image":               "commands that build and carry images",
	"internal/ignition":            "the ignition server: its cache and the tools of a payload; refuses with the error and tries again",
	"internal/packages/author":     "a command of a person, who reads the error",
	"internal/testenv":             "tests",
	"internal/support/supportdocs": "make generate",
	"internal/capigroup/crdgen":    "make generate",
}

// When a disk is full every operator should go on: what it knows is in the API server, and it writes no files. A room that has to is named above, with what
// happens then.
func TestOperatorsWriteNoFiles(t *testing.T) {
	used := map[string]bool{}
	for folder, list := range files(t) {
		room := strings.TrimPrefix(filepath.ToSlash(folder), root+"/")
		allowed := ""
		for name := range onDisk {
			if room == name || strings.HasPrefix(room, name+"/") {
				allowed = name
			}
		}
		for _, f := range list {
			for _, made := range makesFiles {
				if !calls(f, made.of, made.name) {
					continue
				}
				if allowed == "" {
					t.Errorf("%s calls %s.%s: keep it in the API server or in memory, or write down in this test what happens when the disk is full", room, made.of, made.name)
				}
				used[allowed] = true
			}
		}
	}
	for name := range onDisk {
		if !used[name] {
			t.Errorf("%s writes no files any more: remove it from this test", name)
		}
	}
}
