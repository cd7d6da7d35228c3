package ignite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	types "github.com/coreos/ignition/v2/config/v3_5/types"

	"hcp.internal/platform/internal/machine/unit"
)

// unitFolder is where units of a config go.
const unitFolder = "etc/systemd/system"

// Result says what a config asked for besides files.
type Result struct {
	// Units are the names of units that are to run, sorted.
	Units []string
	// Written counts directories, files and links.
	Written int
}

// Writer writes what a config asks for below a folder.
type Writer struct {
	// Root is the machine's root; nothing outside of it is written, whatever links lie below it.
	Root string
	Say  func(format string, args ...any)
	// KeepFolders leaves what is in folders that are there, also where the config says overwrite: once a machine has booted, that is what its programs have stored.
	KeepFolders bool

	root *os.Root
	left int64 // bytes that may still be written
	// What attempts before this one have done too: ours is what this writer has made, and ends are how long files were that it has appended to.
	ours map[string]bool
	ends map[string]int64
}

// Write applies a config. It may be repeated after an error: what was written before is replaced by the same.
func (w *Writer) Write(ctx context.Context, cfg *types.Config) (*Result, error) {
	root, err := os.OpenRoot(w.Root)
	if err != nil {
		return nil, fmt.Errorf("opening the root: %w", err)
	}
	defer root.Close()
	w.root, w.left = root, maxTotal
	if w.ours == nil {
		w.ours, w.ends = map[string]bool{}, map[string]int64{}
	}
	f, err := newFetcher(ctx, cfg.Ignition, w.Say)
	if err != nil {
		return nil, err
	}
	if len(cfg.Passwd.Users)+len(cfg.Passwd.Groups) > 0 {
		w.Say("passwd is left out: nobody logs in to machines of platform Local")
	}
	if len(cfg.KernelArguments.ShouldExist)+len(cfg.KernelArguments.ShouldNotExist) > 0 {
		w.Say("kernelArguments are left out: machines of platform Local share a kernel")
	}
	result := &Result{}
	// Parents before children, whatever the order in the config.
	dirs := slices.SortedFunc(slices.Values(cfg.Storage.Directories), func(a, b types.Directory) int { return strings.Compare(a.Path, b.Path) })
	for _, d := range dirs {
		if err := w.directory(d); err != nil {
			return nil, fmt.Errorf("directory %s: %w", d.Path, err)
		}
		result.Written++
	}
	for _, file := range cfg.Storage.Files {
		if err := w.file(ctx, f, file); err != nil {
			return nil, fmt.Errorf("file %s: %w", file.Path, err)
		}
		result.Written++
	}
	for _, l := range cfg.Storage.Links {
		if err := w.link(l); err != nil {
			return nil, fmt.Errorf("link %s: %w", l.Path, err)
		}
		result.Written++
	}
	for _, u := range cfg.Systemd.Units {
		if err := w.unit(u); err != nil {
			return nil, fmt.Errorf("unit %s: %w", u.Name, err)
		}
		if u.Enabled != nil && *u.Enabled && (u.Mask == nil || !*u.Mask) {
			result.Units = append(result.Units, u.Name)
		}
	}
	slices.Sort(result.Units)
	result.Units = slices.Compact(result.Units)
	return result, nil
}

// inside turns an absolute path of a config into one below the root.
func inside(p string) (string, error) {
	clean := path.Clean(p)
	if !path.IsAbs(p) || clean == "/" || strings.ContainsRune(p, 0) {
		return "", errors.New("the path must be absolute and not the root")
	}
	return clean[1:], nil
}

func (w *Writer) parents(p string) error {
	if dir := path.Dir(p); dir != "." {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("creating the folder: %w", err)
		}
	}
	return nil
}

// clear makes room for a node. What is there is removed only when the config says overwrite or this writer has made it, in an attempt before; a folder that it
// has made is kept then, and with KeepFolders any. Otherwise it is kept when it is of the kind that keep accepts.
func (w *Writer) clear(p string, n types.Node, keep func(fs.FileInfo) bool) (kept bool, err error) {
	info, err := w.root.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		w.ours[p] = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	again, overwrite := w.ours[p], n.Overwrite != nil && *n.Overwrite
	switch {
	case (again || w.KeepFolders) && info.IsDir() && keep(info):
		return true, nil
	case again || overwrite:
		w.ours[p] = true
		return false, w.root.RemoveAll(p)
	case keep(info):
		return true, nil
	}
	return false, errors.New("something is there already and overwrite is not set")
}

func (w *Writer) directory(d types.Directory) error {
	p, err := inside(d.Path)
	if err != nil {
		return err
	}
	if err := w.parents(p); err != nil {
		return err
	}
	kept, err := w.clear(p, d.Node, func(i fs.FileInfo) bool { return i.IsDir() || i.Mode()&fs.ModeSymlink != 0 })
	if err != nil {
		return err
	}
	if !kept {
		if err := w.root.Mkdir(p, 0o755); err != nil {
			return err
		}
	}
	return w.own(p, d.Node, d.Mode, 0o755, w.ours[p]) // an attempt before may have ended between the two
}

func (w *Writer) file(ctx context.Context, f *fetcher, file types.File) error {
	p, err := inside(file.Path)
	if err != nil {
		return err
	}
	if err := w.parents(p); err != nil {
		return err
	}
	hasContents := file.Contents.Source != nil
	kept, err := w.clear(p, file.Node, func(i fs.FileInfo) bool { return i.Mode().IsRegular() && !hasContents })
	if err != nil {
		return err
	}
	if kept {
		err = w.rewind(p, len(file.Append) > 0)
	} else {
		err = w.write(ctx, f, p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, file.Contents)
	}
	if err != nil {
		return err
	}
	for i, extra := range file.Append {
		if err := w.write(ctx, f, p, os.O_APPEND|os.O_WRONLY, extra); err != nil {
			return fmt.Errorf("append[%d]: %w", i, err)
		}
	}
	return w.own(p, file.Node, file.Mode, 0o644, !kept)
}

// rewind takes from a file that was there what attempts before this one have appended, and remembers where it ends before something is appended.
func (w *Writer) rewind(p string, appends bool) error {
	end, appended := w.ends[p]
	if !appended && !appends {
		return nil
	}
	f, err := w.root.OpenFile(p, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !appended {
		w.ends[p] = info.Size()
		return nil
	}
	return f.Truncate(min(end, info.Size()))
}

// write copies a resource into a file. When that fails, a file that is ours is given up, and another one keeps what was there: a second attempt starts anew.
func (w *Writer) write(ctx context.Context, f *fetcher, p string, flags int, r types.Resource) error {
	out, err := w.root.OpenFile(p, flags, 0o600)
	if err != nil {
		return err
	}
	n, err := f.copy(ctx, out, r, min(maxFile, w.left))
	w.left -= n
	if err = errors.Join(err, out.Close()); err != nil && w.ours[p] {
		_ = w.root.Remove(p)
	}
	return err
}

func (w *Writer) link(l types.Link) error {
	p, err := inside(l.Path)
	if err != nil {
		return err
	}
	if l.Target == nil || *l.Target == "" {
		return errors.New("it has no target")
	}
	if err := w.parents(p); err != nil {
		return err
	}
	kept, err := w.clear(p, l.Node, func(i fs.FileInfo) bool {
		target, err := w.root.Readlink(p)
		return err == nil && target == *l.Target
	})
	if err != nil || kept {
		return err
	}
	if l.Hard != nil && *l.Hard {
		target, err := inside(*l.Target)
		if err != nil {
			return fmt.Errorf("target: %w", err)
		}
		return w.root.Link(target, p)
	}
	if err := w.root.Symlink(*l.Target, p); err != nil {
		return err
	}
	uid, gid, err := w.ids(l.Node)
	if err != nil {
		return err
	}
	return w.root.Lchown(p, uid, gid)
}

// own sets mode and owner. What a node doesn't say is left as it is, except for what we have just made.
func (w *Writer) own(p string, n types.Node, mode *int, usual fs.FileMode, fresh bool) error {
	uid, gid, err := w.ids(n)
	if err != nil {
		return err
	}
	said := n.User.ID != nil || n.User.Name != nil || n.Group.ID != nil || n.Group.Name != nil
	if fresh || said {
		if err := w.root.Chown(p, uid, gid); err != nil {
			return err
		}
	}
	if mode != nil {
		return w.root.Chmod(p, fileMode(*mode))
	}
	if fresh {
		return w.root.Chmod(p, usual)
	}
	return nil
}

// fileMode turns the bits of a config, which are those of chmod, into Go's.
func fileMode(bits int) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for bit, mode := range map[int]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			m |= mode
		}
	}
	return m
}

// ids finds the numbers of a node's owner. Names are looked up in the machine's own files.
func (w *Writer) ids(n types.Node) (uid, gid int, err error) {
	if n.User.ID != nil {
		uid = *n.User.ID
	} else if n.User.Name != nil && *n.User.Name != "" {
		if uid, err = w.lookup("etc/passwd", *n.User.Name); err != nil {
			return 0, 0, err
		}
	}
	if n.Group.ID != nil {
		gid = *n.Group.ID
	} else if n.Group.Name != nil && *n.Group.Name != "" {
		if gid, err = w.lookup("etc/group", *n.Group.Name); err != nil {
			return 0, 0, err
		}
	}
	return uid, gid, nil
}

// lookup finds the number of a name in /etc/passwd or /etc/group; both have it in the third field.
func (w *Writer) lookup(file, name string) (int, error) {
	f, err := w.root.Open(file)
	if err != nil {
		return 0, fmt.Errorf("looking for %s: %w", name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("looking for %s: %w", name, err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) >= 3 && fields[0] == name {
			return strconv.Atoi(fields[2])
		}
	}
	return 0, fmt.Errorf("%s is not in /%s", name, file)
}

// unit writes a unit's file and drop-ins, and masks it when asked to.
func (w *Writer) unit(u types.Unit) error {
	if !unit.ValidName(u.Name) {
		return errors.New("not a name of a unit")
	}
	if err := w.root.MkdirAll(unitFolder, 0o755); err != nil {
		return err
	}
	file := path.Join(unitFolder, u.Name)
	if u.Mask != nil && *u.Mask {
		if err := w.root.RemoveAll(file); err != nil {
			return err
		}
		return w.root.Symlink(os.DevNull, file)
	}
	if target, err := w.root.Readlink(file); u.Mask != nil && err == nil && path.Clean(target) == os.DevNull {
		if err := w.root.Remove(file); err != nil {
			return fmt.Errorf("unmasking it: %w", err)
		}
	}
	if u.Contents != nil {
		if err := w.replace(file, *u.Contents); err != nil {
			return err
		}
	}
	for _, d := range u.Dropins {
		if path.Base(d.Name) != d.Name || !strings.HasSuffix(d.Name, ".conf") {
			return fmt.Errorf("drop-in %q: not a name that ends with .conf", d.Name)
		}
		if d.Contents == nil {
			continue
		}
		if err := w.root.MkdirAll(file+".d", 0o755); err != nil {
			return err
		}
		if err := w.replace(path.Join(file+".d", d.Name), *d.Contents); err != nil {
			return fmt.Errorf("drop-in %s: %w", d.Name, err)
		}
	}
	return nil
}

func (w *Writer) replace(p, content string) error {
	if err := w.root.RemoveAll(p); err != nil {
		return err
	}
	return w.root.WriteFile(p, []byte(content), 0o644)
}
