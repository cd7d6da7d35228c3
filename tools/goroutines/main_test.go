package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

var loaded = sync.OnceValues(func() ([]pkg, error) { return load(root) })

func packages(t *testing.T) []pkg {
	t.Helper()
	list, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAlone(t *testing.T) {
	for _, p := range packages(t) {
		for name, test := range p.tests {
			if !isAlone.MatchString(name) {
				if calls(test.node, "testenv", "CrashAtEveryWrite") || calls(test.node, "testenv", "Storm") {
					t.Errorf("%s: %s plays passes again and again: put that into a test whose name matches %s, so that it runs without the race detector", p.dir, name, alone)
				}
				continue
			}
			for _, d := range p.reachedInTests(test) {
				if how := startsItself(d.node, sharingCalls); how != "" {
					t.Errorf("%s: the name of %s is one of a test in which one goroutine works, but %s starts others (%s): give it another name", p.dir, name, d.name, how)
				}
			}
		}
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, root); err != nil {
		t.Fatal(err)
	}
	lists := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		name, list, _ := strings.Cut(strings.TrimSpace(line), "=")
		lists[name] = strings.Fields(strings.Trim(list, "'"))
	}
	t.Run("When packages are listed it should have every one with tests once", func(t *testing.T) {
		list := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", "./...")
		list.Dir = root
		raw, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		top, err := filepath.Abs(root)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(lists["meeting"], lists["others"], lists["computing"])
		for dir := range strings.FieldsSeq(string(raw)) {
			rel, err := filepath.Rel(top, dir)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.Index(all, "./"+filepath.ToSlash(rel))
			if at < 0 && !slices.Contains(testsElsewhere, rel) {
				// Test files without tests have none to run.
				for _, p := range packages(t) {
					if p.dir == rel && len(p.tests) > 0 {
						t.Errorf("%s has tests, and nobody runs them", rel)
					}
				}
				continue
			}
			if at >= 0 {
				all = slices.Delete(all, at, at+1)
			}
		}
		if len(all) > 0 {
			t.Errorf("these are listed twice, or have no tests: %v", all)
		}
	})
	t.Run("When goroutines meet in a package its tests should run with the detector", func(t *testing.T) {
		for _, dir := range []string{"./internal/packages/control/manager", "./internal/konnectivity", "./internal/kube/process", "./cmd/hcp-operators"} {
			if !slices.Contains(lists["meeting"], dir) {
				t.Errorf("%s is not among them", dir)
			}
		}
		if !slices.Contains(lists["suites"], "./internal/packages/acceptance") {
			t.Error("the crash suites of internal/packages/acceptance are not among the suites")
		}
		without := regexp.MustCompile(lists["alone"][0])
		for name, want := range map[string]bool{"TestDeletion": false, "TestOperator": false, "TestDifferential": true, "TestMigrationCrash": true} {
			if without.MatchString(name) != want {
				t.Errorf("%s runs without the detector: %v", name, !want)
			}
		}
		for _, p := range packages(t) {
			for name, test := range p.tests {
				if p.meets() && test.starts() && withoutDetector[p.dir] == "" && without.MatchString(name) && !isAlone.MatchString(name) {
					t.Errorf("%s of %s starts goroutines (%s), and runs without the detector", name, p.dir, test.how)
				}
			}
		}
		for dir, why := range withoutDetector {
			of := slices.IndexFunc(packages(t), func(p pkg) bool { return p.dir == dir && p.meets() })
			if of < 0 || !slices.Contains(lists["others"], "./"+dir) {
				t.Errorf("%s (%s) needs no exception", dir, why)
			}
		}
		for dir, want := range map[string]string{
			"./internal/contract/nodeconfig": "computing", "./internal/sizing": "computing",
			"./internal/sidecar/waitdns": "others", // waits for a timer
			"./internal/controlplane":    "others", // computes once what it needs again, with an API server
			"./test/adversary/fault":     "others", // starts processes
			"./internal/cli/destroy":     "others", // an exception
		} {
			if !slices.Contains(lists[want], dir) {
				t.Errorf("%s is not in the list %s", dir, want)
			}
		}
	})
}
