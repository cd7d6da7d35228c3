package floors

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// paths are folders and files of the repository that a page names; what is written as a pattern is not among them.
var paths = regexp.MustCompile("`((?:internal|cmd|test|tools|docs|hack|config|alerts|api)/[A-Za-z0-9_./-]+)`")

// When something moves, the pages that say where it is should move with it.
func TestPathsExist(t *testing.T) {
	for _, name := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		found := paths.FindAllStringSubmatch(string(text), -1)
		if len(found) < 5 {
			t.Errorf("%s names %d paths only: does the pattern see them?", name, len(found))
		}
		for _, m := range found {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
	}
}

// When a room is new, a reader who wants to change what it does should find it on the map.
func TestRoomsAreOnTheMap(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		if name := "`internal/" + room.Name(); room.IsDir() && !strings.Contains(string(text), name+"`") && !strings.Contains(string(text), name+"/") {
			t.Errorf("docs/architecture.md does not say what is in internal/%s: give it a row in \"I want to change\"", room.Name())
		}
	}
}
