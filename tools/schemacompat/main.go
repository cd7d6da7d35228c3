package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"hcp.internal/tools/internal/reasons"
	"hcp.internal/tools/internal/schema"
)

func main() {
	write := flag.Bool("write", false, "write the baseline instead of comparing with it")
	baseline := flag.String("baseline", "", "file that describes the definitions of the previous release")
	allowed := flag.String("allowed", "", "file with a reason for every difference that is meant")
	flag.Parse()
	if err := run(os.Stdout, *write, *baseline, *allowed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "schemacompat:", err)
		os.Exit(1)
	}
}

// sets are kinds by the name of the set and their own.
type sets map[string]map[string]schema.Kind

func run(out io.Writer, write bool, baseline, allowed string, args []string) error {
	now := sets{}
	for _, arg := range args {
		set, folder, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("want SET=FOLDER, got %q", arg)
		}
		now[set] = map[string]schema.Kind{}
		if err := schema.ReadDefinitions(folder, now[set]); err != nil {
			return err
		}
		if len(now[set]) == 0 {
			return fmt.Errorf("there is no definition in %s", folder)
		}
	}
	if write {
		return os.WriteFile(baseline, marshal(now), 0o644)
	}
	before, err := unmarshal(baseline)
	if err != nil {
		return err
	}
	meant, err := reasons.Read(allowed)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range compare(before, now) {
		if why, ok := meant.For(p.set, p.kind, p.path, p.fact); ok {
			fmt.Fprintf(out, "allowed: %s: %s\n", p, why)
			continue
		}
		errs = append(errs, fmt.Errorf("%s", p))
	}
	for _, r := range meant.Unused() {
		errs = append(errs, fmt.Errorf("what is allowed does not happen, remove it: %s", r))
	}
	return errors.Join(errs...)
}

// problem is something that clients or stored objects may trip over.
type problem struct{ set, kind, path, fact, text string }

func (p problem) String() string {
	return fmt.Sprintf("%s %s %s: %s", p.set, p.kind, orRoot(p.path), p.text)
}

func orRoot(path string) string {
	if path == "" {
		return "(kind)"
	}
	return path
}

// compare lists the problems of now for who knows before, in order.
func compare(before, now sets) []problem {
	var all []problem
	for _, set := range slices.Sorted(maps.Keys(before)) {
		for _, name := range slices.Sorted(maps.Keys(before[set])) {
			was, is := before[set][name], now[set][name]
			if is == nil && set == "techpreview" {
				is = now["default"][name] // no preview any more
			}
			if is == nil {
				all = append(all, problem{set, name, "", "kind", "the kind is gone"})
				continue
			}
			all = append(all, compareKind(set, name, was, is)...)
		}
	}
	return all
}

func compareKind(set, name string, was, is schema.Kind) []problem {
	var all []problem
	add := func(path, fact, format string, args ...any) {
		all = append(all, problem{set, name, path, fact, fmt.Sprintf(format, args...)})
	}
	for _, path := range slices.Sorted(maps.Keys(was)) {
		if is[path] == nil {
			add(path, "field", "the field is gone")
			continue
		}
		if path == "" {
			compareAbout(was[path], is[path], func(fact, text string) { add(path, fact, "%s", text) })
			continue
		}
		compareField(was[path], is[path], func(fact, text string) { add(path, fact, "%s", text) })
	}
	for _, path := range slices.Sorted(maps.Keys(is)) {
		parent := path[:max(strings.LastIndexByte(path, '.'), 0)]
		parent = strings.TrimSuffix(strings.TrimSuffix(parent, "[]"), "{}")
		if was[path] == nil && was[parent] != nil && is[path]["required"] != "" && is[path]["default"] == "" {
			add(path, "required", "the new field is required, so objects of before are refused")
		}
	}
	return all
}

func marshal(all sets) []byte {
	var buf bytes.Buffer
	buf.WriteString("# Definitions of the previous release. Written by schemacompat -write.\n")
	for _, set := range slices.Sorted(maps.Keys(all)) {
		for _, name := range slices.Sorted(maps.Keys(all[set])) {
			fmt.Fprintf(&buf, "## %s\t%s\n", set, name)
			for _, path := range slices.Sorted(maps.Keys(all[set][name])) {
				field := all[set][name][path]
				for _, fact := range slices.Sorted(maps.Keys(field)) {
					if strings.HasSuffix(fact, "celRules") || strings.HasSuffix(fact, "immutable") {
						continue // rules are there with their texts
					}
					fmt.Fprintf(&buf, "%s\t%s\t%s\n", path, fact, field[fact])
				}
			}
		}
	}
	return buf.Bytes()
}

func unmarshal(path string) (sets, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := sets{}
	var kind schema.Kind
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			set, name, _ := strings.Cut(heading, "\t")
			if all[set] == nil {
				all[set] = map[string]schema.Kind{}
			}
			kind = schema.Kind{}
			all[set][name] = kind
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		c := strings.SplitN(line, "\t", 3)
		if len(c) != 3 || kind == nil {
			return nil, fmt.Errorf("%s:%d: want path, fact and value below a heading, separated by tabs", path, n)
		}
		if kind[c[0]] == nil {
			kind[c[0]] = schema.Facts{}
		}
		kind[c[0]][c[1]] = c[2]
	}
	return all, lines.Err()
}
