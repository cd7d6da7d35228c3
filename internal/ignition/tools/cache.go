package tools

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// workPrefix begins the names of folders in which payloads are made.
	workPrefix = "payload-"
	// cacheDir holds payloads by the keys of their inputs. They are secret: nobody else may read the folder.
	cacheDir = "made"
	// maxCached payloads stay, which is more than a hosted cluster has configurations of machines; older ones go.
	maxCached = 100
)

// tidy removes, once, what a process that was killed has left.
func (g *Generator) tidy() error {
	if g.tidied {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(g.Work, cacheDir), 0o700); err != nil {
		return fmt.Errorf("making the folder of payloads: %w", err)
	}
	entries, err := os.ReadDir(g.Work)
	if err != nil {
		return fmt.Errorf("reading the folder of payloads: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), workPrefix) {
			errs = append(errs, os.RemoveAll(filepath.Join(g.Work, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing payloads that were left half-made: %w", err)
	}
	g.tidied = true
	return nil
}

// cached is what was made of the inputs with a key; nil: nothing, or it is damaged.
func (g *Generator) cached(key string) []byte {
	at := filepath.Join(g.Work, cacheDir, key)
	data, err := readBounded(at)
	if err != nil {
		return nil
	}
	sum, body, ok := strings.Cut(string(data), "\n")
	if !ok || sum != digest([]byte(body)) {
		_ = os.Remove(at) // it is written anew
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(at, now, now) // only tells that it is in use
	return []byte(body)
}

// keep stores a payload. Should that fail, it is made again one day.
func (g *Generator) keep(key string, data []byte) {
	dir := filepath.Join(g.Work, cacheDir)
	part := filepath.Join(dir, ".part")
	if os.WriteFile(part, append([]byte(digest(data)+"\n"), data...), 0o600) != nil || os.Rename(part, filepath.Join(dir, key)) != nil {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= maxCached {
		return
	}
	used := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			used[e.Name()] = info.ModTime()
		}
	}
	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	for _, name := range names[min(len(names), maxCached):] {
		_ = os.Remove(filepath.Join(dir, name))
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
