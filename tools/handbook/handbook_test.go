package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestReasonsAreExplained(t *testing.T) {
	reasons, err := allReasons(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(reasons) < 100 {
		t.Fatalf("only %d reasons were found", len(reasons))
	}
	have, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, Page(reasons)) {
		t.Errorf("%s is not of this code: run `make generate`", page)
	}
}

// TestEventsAreExplained fails for an event without a line in docs/events.md, and for a line whose event nobody tells any more.
func TestEventsAreExplained(t *testing.T) {
	events, err := Events(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	if len(events) < 20 {
		t.Fatalf("only %d events were found", len(events))
	}
	explained, err := explainedEvents(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range slices.Sorted(maps.Keys(events)) {
		if !explained[reason] {
			t.Errorf("docs/events.md does not explain event %s, which %s tells", reason, events[reason])
		}
	}
	for reason := range explained {
		if events[reason] == "" {
			t.Errorf("docs/events.md explains event %s, which nobody tells", reason)
		}
	}
}

func TestEvents(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a.go": "package a\n\nconst eventDone = \"Done\"\nconst reason = \"Named\"\n",
		"b.go": "package a\n\nfunc f() {\n\tr.Eventf(o, nil, warning, \"Said\", \"Do\", \"x\")\n\tevents.Event(r, o, true, reason, \"Do\", \"x\")\n\tg(Rule{Begins: \"Begun\"})\n\tother(o, nil, warning, \"Not\")\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Events(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"Begun", "Done", "Named", "Said"}) {
		t.Fatal(got)
	}
}

func TestOwnReasons(t *testing.T) {
	dir := t.TempDir()
	content := "package a\n\nconst (\n\t// brokenReason: it broke.\n\tbrokenReason = \"Broken\"\n\treasonKey = \"reason\"\n)\n\nfunc f() {\n\tconditions.False(kind, \"Known\", \"Not this\")\n" +
		"\tconditions.New(kind, status, \"Mysterious\", \"\")\n\treason := \"Puzzling\"\n\tg(C{Reason: \"Strange\", Message: \"Message\"})\n\tother.True(kind, \"Nothing\", \"\")\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := OwnReasons(dir, map[string]bool{"Known": true})
	var values []string
	for _, r := range found {
		values = append(values, r.Value+" "+r.Meaning)
	}
	if !slices.Equal(values, []string{"Broken It broke.", "Mysterious ", "Puzzling ", "Strange "}) {
		t.Errorf("found %q", values)
	}
	for _, want := range []string{"Mysterious", "Puzzling", "Strange"} {
		if err == nil || !strings.Contains(err.Error(), `reason "`+want+`" has neither`) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
