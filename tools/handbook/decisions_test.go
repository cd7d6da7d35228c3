package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	decision = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	// title of a decision that says its number, too.
	title = regexp.MustCompile(`^# (\d+)\. `)
)

// TestDecisionsAreNumbered: people say "decision 66", so when two have a number nobody knows which is meant.
func TestDecisionsAreNumbered(t *testing.T) {
	dir := filepath.Join(root, "docs", "decisions")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, e := range entries {
		found := decision.FindStringSubmatch(e.Name())
		if found == nil {
			t.Errorf("%s: a decision is called NNNN-what-was-decided.md", e.Name())
			continue
		}
		if other := seen[found[1]]; other != "" {
			t.Errorf("%s has the number of %s: give it the next that is free", e.Name(), other)
		}
		seen[found[1]] = e.Name()
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if number := title.FindSubmatch(text); number != nil && string(number[1]) != strings.TrimLeft(found[1], "0") {
			t.Errorf("%s: its title has number %s", e.Name(), number[1])
		}
	}
}
