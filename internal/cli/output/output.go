// Package output prints objects and values the way people expect from a Kubernetes command: a table or lines by default,
// JSON or YAML when asked.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Formats that -o takes. Text is the default and is for people: it may change between versions.
const (
	Text = ""
	JSON = "json"
	YAML = "yaml"
)

// Format is the value of an output flag; it refuses what it doesn't know when the flags are parsed.
type Format string

var _ pflag.Value = (*Format)(nil)

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "json|yaml" }

// Set implements pflag.Value.
func (f *Format) Set(s string) error {
	if !slices.Contains([]string{JSON, YAML}, s) {
		return fmt.Errorf("unknown format %q: use json or yaml", s)
	}
	*f = Format(s)
	return nil
}

// AddFlag declares -o/--output on cmd.
func (f *Format) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "Print the result as json or yaml")
	f.complete(cmd, "output")
}

// Name and Wide are formats of commands that print objects: kind and name a line, and more columns.
const (
	Name = "name"
	Wide = "wide"
)

// listFormat is a Format with more values.
type listFormat struct {
	*Format
	values []string
}

// Type implements pflag.Value.
func (f listFormat) Type() string { return strings.Join(f.values, "|") }

// Set implements pflag.Value.
func (f listFormat) Set(s string) error {
	if !slices.Contains(f.values, s) {
		return fmt.Errorf("unknown format %q: use %s", s, strings.Join(f.values, ", "))
	}
	*f.Format = Format(s)
	return nil
}

// AddObjectFlag declares -o/--output with the formats of commands that print objects: json, yaml, name, and more of them.
func (f *Format) AddObjectFlag(cmd *cobra.Command, more ...string) {
	values := append([]string{JSON, YAML, Name}, more...)
	cmd.Flags().VarP(listFormat{f, values}, "output", "o", "Print the result as "+strings.Join(values, ", "))
	// Only fails for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// AddNamedFlag declares the format under another name than --output, as `install render --format` has it.
func (f *Format) AddNamedFlag(cmd *cobra.Command, name, usage string) {
	cmd.Flags().Var(f, name, usage)
	f.complete(cmd, name)
}

func (f *Format) complete(cmd *cobra.Command, name string) {
	// Only fails for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{JSON, YAML}, cobra.ShellCompDirectiveNoFileComp))
}

// Value writes v in the format; Text is written as YAML, so callers with a text form handle Text themselves.
func (f Format) Value(w io.Writer, v any) error {
	var raw []byte
	var err error
	if f == JSON {
		if raw, err = json.MarshalIndent(v, "", "  "); err == nil {
			raw = append(raw, '\n')
		}
	} else {
		raw, err = yaml.Marshal(v)
	}
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	_, err = w.Write(raw)
	return err
}

// Objects writes Kubernetes objects so that `kubectl apply -f -` takes them: YAML documents, or one JSON List.
func (f Format) Objects(w io.Writer, objs []map[string]any) error {
	if f == JSON {
		items := make([]any, len(objs))
		for i := range objs {
			items[i] = objs[i]
		}
		return f.Value(w, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
	}
	for _, obj := range objs {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
		if err := f.Value(w, obj); err != nil {
			return err
		}
	}
	return nil
}

// Table writes rows in aligned columns. The first row is the header.
func Table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s", widths[i]+2, cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}
