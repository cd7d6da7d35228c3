package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reasons say why a spec fails or cannot be run here: name of the spec to a sentence.
type Reasons map[string]string

// ParseReasons reads lines of a name, a tab and a sentence. Empty lines and those that begin with # are left out.
func ParseReasons(data []byte) (Reasons, error) {
	out := Reasons{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("line %d of the reasons: want the name of a spec, a tab and a sentence", n)
		}
		out[name] = strings.TrimSpace(reason)
	}
	return out, lines.Err()
}

// Unexplained are the names of specs that failed without a reason.
func Unexplained(cases []Case, reasons Reasons) []string {
	var out []string
	for _, c := range cases {
		if c.Failure != "" && reasons[c.Name] == "" {
			out = append(out, c.Name)
		}
	}
	return out
}

// Markdown is the part of docs/conformance.md that tells what came of the suite.
func Markdown(cases []Case, reasons Reasons) string {
	type count struct{ all, passed, failed, skipped int }
	groups := map[string]*count{"all": {}}
	for _, c := range cases {
		g := Group(c.Name)
		if groups[g] == nil {
			groups[g] = &count{}
		}
		for _, n := range []*count{groups[g], groups["all"]} {
			n.all++
			switch {
			case c.Failure != "":
				n.failed++
			case c.Skipped != "":
				n.skipped++
			default:
				n.passed++
			}
		}
	}
	var b strings.Builder
	b.WriteString("| group | specs | passed | failed | not run |\n|---|---|---|---|---|\n")
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(groups)), func(n string) bool { return n == "all" })
	for _, g := range append(names, "all") {
		n := groups[g]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", g, n.all, n.passed, n.failed, n.skipped)
	}
	// Those that nobody has run yet are in the count: there may be hundreds.
	skipped := func(c Case) string {
		if c.Skipped == notRun && reasons[c.Name] == "" {
			return ""
		}
		return c.Skipped
	}
	b.WriteString(list(cases, reasons, "Failed", func(c Case) string { return c.Failure }))
	b.WriteString(list(cases, reasons, "Not run", skipped))
	return b.String()
}

// list is a table of the specs that text has something to say about.
func list(cases []Case, reasons Reasons, title string, text func(Case) string) string {
	var b strings.Builder
	for _, c := range cases {
		said := text(c)
		if said == "" {
			continue
		}
		if reason := reasons[c.Name]; reason != "" {
			said = reason
		}
		if b.Len() == 0 {
			fmt.Fprintf(&b, "\n### %s\n\n| spec | why |\n|---|---|\n", title)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", cell(strings.TrimSuffix(c.Name, " [Conformance]")), cell(said))
	}
	return b.String()
}

// cell keeps a text within a cell of a table.
func cell(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "[", "\\[").Replace(line)
}
