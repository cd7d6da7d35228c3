package floors

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "hcp.internal/platform/"
	page   = root + "/docs/architecture.md"
	begin  = "<!-- floors: written by UPDATE=true go test ./floors in tools -->\n"
	end    = "<!-- end of floors -->\n"
)

// imports are the packages of ours that each package imports, for any system and build tag; tests don't count.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, top := range []string{"internal", "cmd", "config", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			pkg, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			found[pkg] = append(found[pkg], []string{}...)
			for _, spec := range f.Imports {
				to, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if to, ours := strings.CutPrefix(to, module); ours && !slices.Contains(found[pkg], to) {
					found[pkg] = append(found[pkg], to)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestImports(t *testing.T) {
	all := imports(t)
	if len(all) < 100 {
		t.Fatalf("found %d packages only: is %s the repository?", len(all), root)
	}
	for from, list := range all {
		for _, to := range list {
			if why := Judge(from, to); why != "" {
				t.Errorf("%s imports %s: %s", from, to, why)
			}
			if in(from, "contract") && !in(to, "contract") && !in(to, "clip") {
				t.Errorf("%s imports %s: a contract needs nothing but the API", from, to)
			}
		}
	}
}

// A table that names what is gone is believed by nobody.
func TestRoomsExist(t *testing.T) {
	seen := map[string]bool{}
	exists := func(folder string) bool {
		info, err := os.Stat(filepath.Join(root, folder))
		return err == nil && info.IsDir()
	}
	for _, f := range Floors {
		for _, room := range f.Rooms {
			if seen[room] {
				t.Errorf("room %s is on two floors", room)
			}
			seen[room] = true
			if !exists("internal/"+room) && !exists(room) {
				t.Errorf("room %s of floor %s does not exist: take it out", room, f.Name)
			}
		}
	}
	for wing, parts := range Wings {
		for _, p := range parts {
			if !exists("internal/" + wing + "/" + p) {
				t.Errorf("part %s of wing %s does not exist: take it out", p, wing)
			}
		}
	}
	for _, pair := range Apart {
		for _, room := range pair {
			if !exists("internal/" + room) {
				t.Errorf("room %s, which is to be apart from another, does not exist: take it out", room)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		why      string // a part of it; empty: allowed
	}{
		"When a room imports one below it should be fine":              {"internal/hostedcluster", "internal/kube/apply", ""},
		"When a room imports its own it should be fine":                {"internal/hostedcluster", "internal/hostedcluster/metrics", ""},
		"When a room imports one above it should say so":               {"internal/release", "internal/hostedcluster", "leads up, from floor sources to floor HostedClusters"},
		"When neighbours import each other it should say so":           {"internal/release", "internal/capigroup/proxy", "don't know each other"},
		"When rooms are to be apart it should say so":                  {"internal/nodepool/machines", "internal/ignition/tokens", "internal/contract"},
		"When a room is new it should ask for a floor":                 {"internal/attic", "internal/kube/apply", "room attic is on no floor"},
		"When a wing's part imports a later one it should say so":      {"internal/packages/engine/phase", "internal/packages/control/set", "within the wing"},
		"When a wing's part imports an earlier one it should be fine":  {"internal/packages/control/set", "internal/packages/engine/phase", ""},
		"When a program imports what is for tests it should say so":    {"internal/release", "internal/testenv", "only tests"},
		"When a helper of tests imports anything it should be fine":    {"internal/release/releasetest", "internal/hostedcluster", ""},
		"When a name only begins alike it should be a room of its own": {"internal/kubernetes", "internal/clip", "room kubernetes is on no floor"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.from, tc.to)
			if (got == "") != (tc.why == "") || !strings.Contains(got, tc.why) {
				t.Errorf("got %q, want %q", got, tc.why)
			}
		})
	}
}

// table is what docs/architecture.md shows: the top floor first, as a house is drawn.
func table() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "| floor | rooms | what is on it |\n|---|---|---|")
	for i := len(Floors) - 1; i >= 0; i-- {
		f, rooms := Floors[i], []string{}
		for _, room := range f.Rooms {
			text := "`" + room + "`"
			if parts := Wings[room]; parts != nil {
				text += " (" + strings.Join(parts, " ← ") + ")"
			}
			rooms = append(rooms, text)
		}
		fmt.Fprintf(&b, "| %d %s | %s | %s |\n", i, f.Name, strings.Join(rooms, ", "), f.What)
	}
	return b.Bytes()
}

func TestDocs(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	a, b := bytes.Index(text, []byte(begin)), bytes.Index(text, []byte(end))
	if a < 0 || b < a {
		t.Fatalf("%s has no place for the floors between %q and %q", page, begin, end)
	}
	a += len(begin)
	if bytes.Equal(text[a:b], table()) {
		return
	}
	if os.Getenv("UPDATE") != "true" {
		t.Fatalf("%s shows other floors than tools/floors/floors.go: run UPDATE=true go test ./floors in tools", page)
	}
	if err := os.WriteFile(page, slices.Concat(text[:a], table(), text[b:]), 0o644); err != nil {
		t.Fatal(err)
	}
}
