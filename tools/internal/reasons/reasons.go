// Package reasons reads files that say why a difference is meant. A line has set, kind, path, fact and reason, separated by tabs; a
// pattern may end in *. Lines that are empty or begin with # are passed over.
package reasons

import (
	"fmt"
	"os"
	"strings"
)

// Reason explains differences.
type Reason struct {
	Set, Kind, Path, Fact string // patterns
	Text                  string
	used                  bool
}

// List is what a file says, in its order.
type List []*Reason

// Read gives no reasons for no path.
func Read(path string) (List, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all List
	for n, line := range strings.Split(string(raw), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c := strings.Split(line, "\t")
		if len(c) != 5 || strings.TrimSpace(c[4]) == "" {
			return nil, fmt.Errorf("%s:%d: want set, kind, path, fact and reason, separated by tabs", path, n+1)
		}
		all = append(all, &Reason{Set: c[0], Kind: c[1], Path: c[2], Fact: c[3], Text: c[4]})
	}
	return all, nil
}

// For is the text of the first reason for a difference.
func (l List) For(set, kind, path, fact string) (string, bool) {
	for _, r := range l {
		if matches(r.Set, set) && matches(r.Kind, kind) && matches(r.Path, path) && matches(r.Fact, fact) {
			r.used = true
			return r.Text, true
		}
	}
	return "", false
}

// Unused are those that For never gave: what they speak of doesn't happen.
func (l List) Unused() (unused List) {
	for _, r := range l {
		if !r.used {
			unused = append(unused, r)
		}
	}
	return unused
}

func (r *Reason) String() string { return strings.Join([]string{r.Set, r.Kind, r.Path, r.Fact}, " ") }

func matches(pattern, text string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(text, start)
	}
	return pattern == text
}
