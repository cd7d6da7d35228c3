package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcp.internal/tools/internal/reasons"
	"hcp.internal/tools/internal/schema"
)

func main() {
	crds := flag.String("crds", "", "folder with the folders default, techpreview and hosted of CustomResourceDefinitions")
	tables := flag.String("tables", "", "folder with tables of field facts")
	explained := flag.String("reasons", "", "file with a reason for every difference that is meant")
	flag.Parse()
	if err := run(os.Stdout, *crds, flag.Args(), *tables, *explained); err != nil {
		fmt.Fprintln(os.Stderr, "schemadiff:", err)
		os.Exit(1)
	}
}

// difference is one fact that the table and the definition see differently. An empty want or got means that there is none.
type difference struct{ set, kind, path, fact, want, got string }

func run(out io.Writer, crds string, more []string, tables, reasonsFile string) error {
	if _, err := os.Stat(tables); tables == "" || err != nil {
		return fmt.Errorf("there are no tables in %q; they come with the specification, name their folder with -tables (make schema-diff TABLES=FOLDER)", tables)
	}
	explained, err := reasons.Read(reasonsFile)
	if err != nil {
		return err
	}
	var all []difference
	lines := 0
	for _, set := range []string{"default", "techpreview"} {
		want, err := readTables(tables, set)
		if err != nil {
			return err
		}
		got := map[string]schema.Kind{}
		folders := append([]string{filepath.Join(crds, "default"), filepath.Join(crds, "hosted")}, more...)
		if set != "default" {
			folders = append(folders, filepath.Join(crds, set))
		}
		for _, folder := range folders {
			if err := schema.ReadDefinitions(folder, got); err != nil {
				return err
			}
		}
		for _, k := range want {
			lines += len(k)
		}
		all = append(all, compare(set, want, got)...)
	}
	return report(out, all, explained, lines)
}

// readTables reads the tables of a set. Tables of machine providers are left out: those definitions are not generated here.
func readTables(folder, set string) (map[string]schema.Kind, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.tsv"))
	if err != nil {
		return nil, err
	}
	kinds := map[string]schema.Kind{}
	gated := func(p string) int {
		if strings.HasSuffix(p, "-gated.tsv") {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(gated(a), gated(b)) })
	for _, path := range paths {
		base := filepath.Base(path)
		if base == "capi-kinds.tsv" || (set == "default" && gated(path) == 1) {
			continue
		}
		if err := readTable(path, kinds); err != nil {
			return nil, err
		}
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("there is no table in %s", folder)
	}
	return kinds, nil
}

// compare lists the differences between what tables want and what definitions say, in order. Kinds that no table holds are
// compared with nothing, so that they are listed too.
func compare(set string, want, got map[string]schema.Kind) []difference {
	var all []difference
	for _, name := range slices.Sorted(maps.Keys(union(want, got))) {
		w, wanted := want[name]
		g, is := got[name]
		if !wanted || !is {
			d := difference{set: set, kind: name, fact: "kind"}
			if wanted {
				d.want = w[""]["kind"]
			} else {
				d.got = g[""]["kind"]
			}
			all = append(all, d)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(union(w, g))) {
			if w[path] == nil || g[path] == nil {
				all = append(all, difference{set, name, path, "field", w[path]["type"], g[path]["type"]})
				continue
			}
			for _, fact := range schema.Names(w[path], g[path]) {
				if strings.HasSuffix(fact, schema.Rules) {
					continue // the tables count rules
				}
				if w[path][fact] != g[path][fact] {
					all = append(all, difference{set, name, path, fact, w[path][fact], g[path][fact]})
				}
			}
		}
	}
	return all
}

func union[V any, M ~map[string]V](a, b M) map[string]bool {
	all := map[string]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}

func report(out io.Writer, all []difference, explained reasons.List, lines int) error {
	open := 0
	for _, d := range all {
		text := "NO REASON WRITTEN"
		if why, ok := explained.For(d.set, d.kind, d.path, d.fact); ok {
			text = why
		} else {
			open++
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\twant %s, got %s\t%s\n", d.set, d.kind, d.path, d.fact, orNone(d.want), orNone(d.got), text)
	}
	fmt.Fprintf(out, "%d lines compared, %d differences, %d without a reason\n", lines, len(all), open)
	var errs []error
	if open > 0 {
		errs = append(errs, fmt.Errorf("%d differences have no reason", open))
	}
	for _, r := range explained.Unused() {
		errs = append(errs, fmt.Errorf("a reason explains nothing any more: %s", r))
	}
	return errors.Join(errs...)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
