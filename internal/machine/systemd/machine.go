package systemd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"hcp.internal/platform/internal/machine/unit"
)

const (
	// unitFolder, below the root, is where links are, and units that don't come with the operating system.
	unitFolder = "etc/systemd/system"
	// maxFile bounds a file that is read.
	maxFile = 256 << 10
)

// errNone is that of a unit that isn't there, errMasked that of one that is linked to the null device.
var (
	errNone   = errors.New("the machine has none of that name")
	errMasked = errors.New("it is masked")
)

// machine is the root of a machine. Nothing outside of it is read or written, whatever links lie below it.
type machine struct {
	root *os.Root
	say  func(format string, args ...any)
	// known are units that were looked at.
	known map[string]looked
}

type looked struct {
	in  *install
	err error // errNone or errMasked
}

func open(root string, say func(format string, args ...any)) (*machine, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("opening the root: %w", err)
	}
	return &machine{root: r, say: say, known: map[string]looked{}}, nil
}

// find looks for a unit, or for the template that it is an instance of. Its error is errNone or errMasked. What can't be read, such as a link that leads out
// of the root, is said and passed over.
func (m *machine) find(name string) (file string, content []byte, err error) {
	names := []string{name}
	if t := template(name); t != "" {
		names = append(names, t)
	}
	for _, n := range names {
		for _, folder := range unit.Folders {
			file := path.Join(folder[1:], n)
			if target, err := m.root.Readlink(file); err == nil && path.Clean(target) == os.DevNull {
				return "", nil, errMasked
			}
			if content, ok := m.read(file); ok {
				return file, content, nil
			}
		}
	}
	return "", nil, errNone
}

// read returns a file's content; false: there is none, or it can't be read, which is said.
func (m *machine) read(file string) ([]byte, bool) {
	content, err := m.readBounded(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.say("/%s is passed over: %v", file, err)
	}
	return content, err == nil
}

func (m *machine) readBounded(file string) ([]byte, error) {
	info, err := m.root.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("it is no regular file of at most %d bytes", maxFile)
	}
	f, err := m.root.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// list returns the names in some folders that have an ending, with the first path of each.
func (m *machine) list(folders []string, ending string) map[string]string {
	out := map[string]string{}
	for _, folder := range folders {
		entries, _ := fs.ReadDir(m.root.FS(), folder) // one that can't be read is as one that isn't there
		for _, e := range entries {
			if n := e.Name(); path.Ext(n) == ending && out[n] == "" {
				out[n] = path.Join(folder, n)
			}
		}
	}
	return out
}
