package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"hcp.internal/tools/internal/schema"
)

// readTable reads one table and adds its kinds, by name, to into. What is there already is replaced field by field.
func readTable(path string, into map[string]schema.Kind) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	t := tableReader{kinds: into, gated: strings.HasSuffix(path, "-gated.tsv")}
	if t.gated {
		// Such a table has no heading: its name is that of the kind.
		base := path[strings.LastIndexByte(path, '/')+1:]
		t.current = into[strings.TrimSuffix(base, "-gated.tsv")+".hypershift.openshift.io"]
		if t.current == nil {
			return fmt.Errorf("%s changes a kind that no table holds", path)
		}
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if err := t.line(lines.Text()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return lines.Err()
}

type tableReader struct {
	kinds   map[string]schema.Kind
	current schema.Kind
	columns int
	gated   bool
}

func (t *tableReader) line(line string) error {
	switch {
	case strings.TrimSpace(line) == "":
		return nil
	case strings.HasPrefix(line, "# column\t"):
		return t.column(strings.Split(line, "\t"))
	case strings.HasPrefix(line, "## "):
		words := strings.Fields(line)
		t.current[""]["version"] = words[1]
		return attributes(words[2:], t.current[""])
	case strings.HasPrefix(line, "# "):
		words := strings.Fields(line)
		t.current, t.columns = schema.Kind{"": {}}, 0
		t.kinds[words[1]] = t.current
		return attributes(words[2:], t.current[""])
	}
	cells := strings.Split(line, "\t")
	if len(cells) != 4 || t.current == nil {
		return fmt.Errorf("want four columns below a heading, got %q", line)
	}
	field := schema.Facts{"type": cells[1]}
	if cells[2] == "required" {
		field["required"] = "true"
	}
	if cells[3] != "-" {
		if err := schema.ParseFacts(strings.TrimPrefix(cells[3], "- "), field); err != nil {
			return err
		}
	}
	t.current[cells[0]] = field
	return nil
}

func (t *tableReader) column(cells []string) error {
	if len(cells) != 5 {
		return fmt.Errorf("want a column's name, type, path and priority, got %q", cells)
	}
	t.columns++
	t.current[""][fmt.Sprintf("column %02d", t.columns)] = strings.Join(cells[1:], " ")
	return nil
}

// attributes reads words like scope=Cluster; "-" means none.
func attributes(words []string, into schema.Facts) error {
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("want NAME=VALUE, got %q", word)
		}
		if value != "-" {
			into[name] = value
		}
	}
	return nil
}
