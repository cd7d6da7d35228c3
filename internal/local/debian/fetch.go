package debian

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"hcp.internal/platform/internal/atomicfile"
)

// Cache is a folder with downloaded and unpacked packages.
type Cache struct {
	Dir string
	// Arch is the architecture of the packages, in the words of Go; empty: this machine's. For another one the cache has an index of packages of its
	// own, so that nothing of this machine is changed.
	Arch string
	// Say tells the person who waits what is being done.
	Say func(format string, args ...any)
}

// Package is a package that has been unpacked.
type Package struct {
	Name string `json:"name"`
	File string `json:"file"`           // of the archive, without folder; names the version
	Size int64  `json:"size,omitempty"` // of the archive, in bytes; 0: an older version didn't write it down
	dir  string // where its files are
}

// index is what the cache knows of a set of packages: its closure at the time of the download.
type index struct {
	Wanted   []string  `json:"wanted"`
	Packages []Package `json:"packages"`
}

// Get returns the packages and what they need, unpacked. set names them in the cache. Without a network it works once they are there.
func (c *Cache) Get(ctx context.Context, set string, wanted []string) ([]Package, error) {
	if err := os.MkdirAll(filepath.Join(c.Dir, "archives"), 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache of packages: %w", err)
	}
	idx, err := c.read(set)
	if err != nil || !slices.Equal(idx.Wanted, wanted) || !c.complete(idx) {
		if idx, err = c.download(ctx, wanted); err != nil {
			return nil, err
		}
		if err := c.write(set, idx); err != nil {
			return nil, err
		}
	}
	if err := c.unpack(ctx, idx.Packages); err != nil {
		return nil, err
	}
	return idx.Packages, nil
}

func (c *Cache) indexFile(set string) string {
	if c.foreign() {
		set += "-" + c.Arch
	}
	return filepath.Join(c.Dir, set+".json")
}

// foreign says that the packages are not for this machine.
func (c *Cache) foreign() bool { return c.Arch != "" && c.Arch != runtime.GOARCH }

// state is where apt keeps what it knows of a foreign architecture.
func (c *Cache) state() string { return filepath.Join(c.Dir, "apt-"+c.Arch) }

// prepare makes the folders that apt wants to find.
func (c *Cache) prepare() error {
	if !c.foreign() {
		return nil
	}
	for _, dir := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(c.state(), dir), 0o755); err != nil {
			return fmt.Errorf("creating folders for apt: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(c.state(), "status"), nil, 0o644) // nothing is installed
}

// apt is a program of apt's, for the architecture. Go and Debian have the same words for those that we build for.
func (c *Cache) apt(ctx context.Context, program string, args ...string) *exec.Cmd {
	var options []string
	if c.foreign() {
		for _, o := range []string{
			"APT::Architecture=" + c.Arch, "APT::Architectures=" + c.Arch, "APT::Sandbox::User=root", "Dir::State=" + c.state(), "Dir::State::lists=" + c.state() + "/lists",
			"Dir::State::status=" + c.state() + "/status", "Dir::Cache=" + c.state() + "/cache",
		} {
			options = append(options, "-o", o)
		}
	}
	return exec.CommandContext(ctx, program, append(options, args...)...)
}

func (c *Cache) archive(p Package) string { return filepath.Join(c.Dir, "archives", p.File) }

func (c *Cache) read(set string) (index, error) {
	var idx index
	data, err := os.ReadFile(c.indexFile(set))
	if err != nil {
		return idx, err
	}
	return idx, json.Unmarshal(data, &idx)
}

func (c *Cache) write(set string, idx index) error {
	data, err := json.MarshalIndent(idx, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the index of packages: %w", err)
	}
	return atomicfile.Write(c.indexFile(set), append(data, '\n'), 0o644)
}

// complete tells whether the archives are there, as long as they were.
func (c *Cache) complete(idx index) bool {
	return !slices.ContainsFunc(idx.Packages, func(p Package) bool {
		info, err := os.Stat(c.archive(p))
		return err != nil || info.Size() == 0 || p.Size != 0 && info.Size() != p.Size
	}) && len(idx.Packages) > 0
}

// settle has everything of a file system on disk, before names in the cache say that it is there: after a power failure they would be believed.
func settle(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("keeping packages: %w", err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("keeping packages: %w", err)
	}
	return nil
}

// download fetches the closure of packages. A machine that never updated its index of packages, or not for long, does so once.
func (c *Cache) download(ctx context.Context, wanted []string) (index, error) {
	idx, err := c.tryDownload(ctx, wanted)
	if err == nil {
		return idx, nil
	}
	c.Say("updating the index of packages")
	if out, uerr := c.apt(ctx, "apt-get", "update").CombinedOutput(); uerr != nil {
		return idx, errors.Join(err, fmt.Errorf("running apt-get update: %w: %s", uerr, tail(out)))
	}
	return c.tryDownload(ctx, wanted)
}

func (c *Cache) tryDownload(ctx context.Context, wanted []string) (index, error) {
	idx := index{Wanted: wanted}
	if err := c.prepare(); err != nil {
		return idx, err
	}
	all, err := closure(ctx, wanted, c.apt)
	if err != nil {
		return idx, err
	}
	c.Say("downloading %d packages", len(all))
	tmp, err := os.MkdirTemp(c.Dir, "download-")
	if err != nil {
		return idx, fmt.Errorf("creating a folder for downloads: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // what is left is removed with the folder
	cmd := c.apt(ctx, "apt-get", append([]string{"-o", "APT::Sandbox::User=root", "download"}, all...)...)
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return idx, fmt.Errorf("running apt-get download: %w: %s", err, tail(out))
	}
	if err := settle(tmp); err != nil {
		return idx, err
	}
	for _, name := range all {
		found, err := filepath.Glob(filepath.Join(tmp, name+"_*.deb"))
		if err != nil || len(found) != 1 {
			return idx, fmt.Errorf("apt-get downloaded %d archives of %s, want 1", len(found), name)
		}
		info, err := os.Stat(found[0])
		if err != nil {
			return idx, fmt.Errorf("keeping %s: %w", name, err)
		}
		p := Package{Name: name, File: filepath.Base(found[0]), Size: info.Size()}
		if err := os.Rename(found[0], c.archive(p)); err != nil {
			return idx, fmt.Errorf("keeping %s: %w", p.File, err)
		}
		idx.Packages = append(idx.Packages, p)
	}
	return idx, nil
}

// maxTail bounds how much of a program's output goes into an error.
const maxTail = 1500

func tail(out []byte) string {
	return strings.TrimSpace(string(out[max(0, len(out)-maxTail):]))
}

// withStderr adds what a program printed to the error that says how it ended.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, tail(exit.Stderr))
	}
	return err
}

// unpack writes each package's files into a folder of their own, once.
func (c *Cache) unpack(ctx context.Context, packages []Package) error {
	all := filepath.Join(c.Dir, "unpacked")
	if err := os.MkdirAll(all, 0o755); err != nil {
		return fmt.Errorf("unpacking packages: %w", err)
	}
	tmp, err := os.MkdirTemp(all, ".new-")
	if err != nil {
		return fmt.Errorf("unpacking packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // what is left is removed with the folder
	var unpacked []string                    // names of folders, the same in tmp and in all
	for i := range packages {
		p := &packages[i]
		name := strings.TrimSuffix(p.File, ".deb")
		p.dir = filepath.Join(all, name)
		if _, err := os.Stat(p.dir); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unpacking %s: %w", p.File, err)
		}
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", c.archive(*p), filepath.Join(tmp, name)).CombinedOutput(); err != nil {
			return fmt.Errorf("unpacking %s: running dpkg-deb: %w: %s", p.File, err, tail(out))
		}
		unpacked = append(unpacked, name)
	}
	if len(unpacked) == 0 {
		return nil
	}
	if err := settle(tmp); err != nil {
		return err
	}
	for _, name := range unpacked {
		if err := os.Rename(filepath.Join(tmp, name), filepath.Join(all, name)); err != nil {
			return fmt.Errorf("keeping what was unpacked: %w", err)
		}
	}
	return nil
}
