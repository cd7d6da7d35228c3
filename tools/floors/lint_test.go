package floors

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// excused matches a line that a linter is told to leave alone, with the linters' names.
var excused = regexp.MustCompile(`//\s*nolint:([a-z0-9,]+)`)

// When a linter is told to leave a line alone, it should be one that is on: of the others nobody knows whether there is anything to leave.
func TestExcusesAreOfLintersThatAreOn(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config := struct {
		Linters struct{ Enable []string }
	}{}
	if err := yaml.Unmarshal(data, &config); err != nil || len(config.Linters.Enable) < 10 {
		t.Fatalf("%d linters are on, %v", len(config.Linters.Enable), err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root || path == filepath.Join(root, "bin")) {
			return skipDir(d, err)
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range excused.FindAllStringSubmatch(string(source), -1) {
			for name := range strings.SplitSeq(found[1], ",") {
				if !slices.Contains(config.Linters.Enable, name) {
					t.Errorf("%s excuses %s, which .golangci.yml doesn't turn on: say the reason as a comment", path, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func skipDir(d fs.DirEntry, err error) error {
	if err == nil && d.IsDir() {
		return filepath.SkipDir
	}
	return err
}
