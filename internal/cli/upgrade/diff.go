package upgrade

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/clip"
)

// Change is a field of an object that would be another. From is empty for what would come, and To for what would go. Values of Secrets are left out.
type Change struct {
	Component string `json:"component"`
	// Object is "Deployment kube-apiserver".
	Object string `json:"object"`
	// Field is a path such as spec.template.spec.containers[etcd].image; empty: the object as a whole.
	Field string `json:"field,omitempty"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// String is the change on a line.
func (c Change) String() string {
	switch {
	case c.Field == "" && c.From == "":
		return c.Object + " would be made"
	case c.Field == "":
		return c.Object + " would go"
	case c.From == "":
		return fmt.Sprintf("%s %s: added %s", c.Object, c.Field, c.To)
	case c.To == "":
		return fmt.Sprintf("%s %s: removed, was %s", c.Object, c.Field, c.From)
	}
	return fmt.Sprintf("%s %s: %s → %s", c.Object, c.Field, c.From, c.To)
}

// Bounds: of a field shown, of a file read, and of fields of one object.
const (
	maxFile   = 8 << 20
	maxFields = 200
	whole     = "the object"
	hidden    = "(hidden)"
)

// rendered are objects by component and file, as `render components --output-dir` writes them.
type rendered map[string]map[string]unstructured.Unstructured

// readRendered reads a folder that was rendered.
func readRendered(root string) (rendered, error) {
	out := rendered{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > maxFile {
			return fmt.Errorf("%s can't be read, or has more than %d bytes: %w", path, maxFile, err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		u := unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &u.Object); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		component := filepath.Base(filepath.Dir(path))
		if out[component] == nil {
			out[component] = map[string]unstructured.Unstructured{}
		}
		out[component][d.Name()] = u
		return nil
	})
	return out, err
}

// compare tells what differs, in the order of components, objects and fields, and which workloads get other pods.
func compare(before, after rendered) (changes []Change, restarts []string) {
	for _, component := range union(before, after) {
		for _, file := range union(before[component], after[component]) {
			was, had := before[component][file]
			is, has := after[component][file]
			named := is
			if !has {
				named = was
			}
			c := Change{Component: component, Object: named.GetKind() + " " + named.GetName()}
			switch {
			case !had:
				c.To = whole
				changes = append(changes, c)
				continue
			case !has:
				c.From = whole
				changes = append(changes, c)
				continue
			}
			d := differ{of: c, secret: named.GetKind() == "Secret"}
			d.value("", was.Object, is.Object)
			changes = append(changes, d.found...)
			if slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, named.GetKind()) &&
				slices.ContainsFunc(d.found, func(c Change) bool { return strings.HasPrefix(c.Field, "spec.template.") }) {
				restarts = append(restarts, c.Object)
			}
		}
	}
	return changes, restarts
}

func union[V any](a, b map[string]V) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]V{a, b} {
			for k := range maps.Keys(m) {
				if !yield(k) {
					return
				}
			}
		}
	}))
}

// differ compares two objects.
type differ struct {
	of     Change
	secret bool
	found  []Change
}

func (d *differ) add(path, from, to string) {
	if len(d.found) >= maxFields {
		return
	}
	c := d.of
	if c.Field = path; c.Field == "" {
		c.Field = "."
	}
	if d.secret && !strings.HasPrefix(path, "metadata.") {
		from, to = hide(from), hide(to)
	}
	c.From, c.To = from, to
	d.found = append(d.found, c)
}

func hide(text string) string {
	if text == "" {
		return ""
	}
	return hidden
}

func (d *differ) value(path string, a, b any) {
	switch was := a.(type) {
	case map[string]any:
		if is, ok := b.(map[string]any); ok {
			d.fields(path, was, is)
			return
		}
	case []any:
		if is, ok := b.([]any); ok {
			d.list(path, was, is)
			return
		}
	case string:
		if is, ok := b.(string); ok && was != is && strings.Contains(was+is, "\n") && !d.secret {
			d.lines(path, was, is)
			return
		}
	}
	if from, to := show(a), show(b); from != to {
		d.add(path, from, to)
	}
}

func (d *differ) fields(path string, was, is map[string]any) {
	for _, k := range union(was, is) {
		at := k
		switch {
		case strings.ContainsAny(k, "./"):
			at = path + "[" + k + "]"
		case path != "":
			at = path + "." + k
		}
		d.value(at, absent(was, k), absent(is, k))
	}
}

// missing stands for what isn't there.
type missing struct{}

func absent(m map[string]any, k string) any {
	if v, ok := m[k]; ok {
		return v
	}
	return missing{}
}

// list compares lists of things with names by these, and others by position.
func (d *differ) list(path string, was, is []any) {
	a, named := byName(was)
	b, alsoNamed := byName(is)
	if named && alsoNamed {
		for _, k := range union(a, b) {
			d.value(path+"["+k+"]", absent(a, k), absent(b, k))
		}
		return
	}
	if all, other := flat(was), flat(is); all != nil && other != nil { // such as arguments: what came and what went
		for _, v := range all {
			if !slices.Contains(other, v) {
				d.add(path, v, "")
			}
		}
		for _, v := range other {
			if !slices.Contains(all, v) {
				d.add(path, "", v)
			}
		}
		return
	}
	for i := range max(len(was), len(is)) {
		at := func(list []any) any {
			if i < len(list) {
				return list[i]
			}
			return missing{}
		}
		d.value(fmt.Sprintf("%s[%d]", path, i), at(was), at(is))
	}
}

func byName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, v := range list {
		m, _ := v.(map[string]any)
		name, ok := m["name"].(string)
		if !ok || out[name] != nil {
			return nil, false
		}
		out[name] = v
	}
	return out, true
}

// flat are the texts of a list that has nothing else; nil: it has.
func flat(list []any) []string {
	out := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil
		}
		out = append(out, clip.Line(s))
	}
	return out
}

// lines compares texts such as files of a ConfigMap, and tells of the first line that differs.
func (d *differ) lines(path, was, is string) {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range max(len(a), len(b)) {
		at := func(list []string) string {
			if i < len(list) {
				return list[i]
			}
			return ""
		}
		if from, to := at(a), at(b); from != to || i >= len(a) || i >= len(b) {
			d.add(fmt.Sprintf("%s line %d", path, i+1), show(from), show(to))
			return
		}
	}
}

// show is a value on one line of bounded length; empty: there is none.
func show(v any) string {
	switch t := v.(type) {
	case missing, nil:
		return ""
	case string:
		return clip.Line(fmt.Sprintf("%q", t))
	case float64:
		return strconv.FormatFloat(t, 'f', -1, 64)
	case map[string]any, []any:
		raw, err := yaml.Marshal(t)
		if err != nil {
			return "?"
		}
		return clip.Line(string(raw))
	}
	return clip.Line(fmt.Sprint(v))
}
