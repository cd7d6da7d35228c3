package testenv

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A seed is the data folder of an etcd on which an API server has set itself up and our definitions are established. Starting from a seed takes a third of the
// processor time of starting from nothing, and the test binary neither reads nor sends definitions. The first test binary that finds no seed makes it, for all
// that use the same sources (seedSources) and the same bundle. A seed can be deleted at any time.
//
// Everything else belongs to one environment only: certificates, ports, and the copy of the seed that etcd writes to.

const (
	// seedsFolder holds the seeds, in the user's folder of caches.
	seedsFolder = "hcp-testenv"
	// seedLife is how long a seed is kept that nobody begins with: definitions change often while somebody works on them, and a seed has 8 MiB.
	seedLife = 48 * time.Hour
	// page is the unit of what is kept of etcd's log, behind whose end there are only zeros.
	page = 4096
)

// caches is the user's folder of caches as this process began; tests of the CLI have a home of their own. It is empty when there is none.
var caches, _ = os.UserCacheDir()

// seedSources are the folders that decide what is in a seed: definitions, how they are read, and how servers are started.
var seedSources = []string{"config", "config/crd/default", "config/capi", "internal/testenv"}

// seedFolder names the seed of this bundle and these sources, which may not exist yet. It is empty where there can be none: outside of a checkout, or
// without a folder of caches.
func seedFolder(binary string) string {
	info, err := os.Stat(binary)
	if err != nil || caches == "" {
		return ""
	}
	hash := sha256.New()
	fmt.Fprintln(hash, info.Size(), info.ModTime().UnixNano())
	for _, folder := range seedSources {
		if err := hashFiles(hash, filepath.Join(moduleRoot(), folder)); err != nil {
			return ""
		}
	}
	return filepath.Join(caches, seedsFolder, hex.EncodeToString(hash.Sum(nil)[:16]))
}

// hashFiles adds names and contents of the files right in a folder, without tests.
func hashFiles(hash io.Writer, folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintln(hash, f.Name(), len(content))
		if _, err := hash.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// plant makes data, etcd's data folder, from a seed. It returns an error that wraps fs.ErrNotExist when there is no seed.
func plant(seed, data string) error {
	if err := copyFolder(seed, data); err != nil {
		return err
	}
	now := time.Now()
	return os.Chtimes(seed, now, now)
}

// keepSeed makes a seed of an etcd's data folder. Nobody may write to that meanwhile. Of several that do so at the same time one wins.
func keepSeed(data, seed string) error {
	seeds := filepath.Dir(seed)
	if err := os.MkdirAll(seeds, 0o700); err != nil {
		return err
	}
	forgetSeeds(seeds)
	next, err := os.MkdirTemp(seeds, "next-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next)
	if err := copyFolder(data, next); err != nil {
		return err
	}
	if err := os.Rename(next, seed); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// forgetSeeds removes those that nobody used for long, and what killed test binaries left half made.
func forgetSeeds(seeds string) {
	list, _ := os.ReadDir(seeds)
	for _, e := range list {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > seedLife {
			_ = os.RemoveAll(filepath.Join(seeds, e.Name()))
		}
	}
}

// copyFolder copies the files of an etcd that isn't running. Space that it has allocated ahead stays behind: etcd makes that anew.
func copyFolder(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch filepath.Ext(name) {
		case ".tmp":
			return nil
		case ".wal":
			return copyLog(path, target)
		}
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}

// copyLog copies a file without the zeros at its end, but for some: a reader knows by them that it has everything.
func copyLog(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	used := len(bytes.TrimRight(content, "\x00"))
	used = min(len(content), (used/page+2)*page)
	return os.WriteFile(to, content[:used], 0o600)
}
