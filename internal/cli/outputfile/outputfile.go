// Package outputfile writes the files that flags of commands name.
package outputfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hcp.internal/platform/internal/atomicfile"
)

// Access says who may read a file that Write writes. A new file is its owner's alone in any case.
type Access int

const (
	// Private is for content that may hold Secrets: a file that was there is closed to others.
	Private Access = iota
	// AsBefore is for other content: a file that was there stays as readable as it was.
	AsBefore
)

// Write replaces the file that a flag names, as a whole or not at all. A link stays one, and what it leads to is replaced. What is no plain file
// (a device, a pipe, an output of this process such as /dev/stdout) is written to as it is.
func Write(path string, content []byte, access Access) error {
	path, err := Follow(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if isOpenFile(path) || err == nil && !info.Mode().IsRegular() {
		return writeTo(path, info, content)
	}
	mode := fs.FileMode(0o600)
	if err == nil && access == AsBefore {
		mode = info.Mode().Perm()
	}
	return atomicfile.Write(path, content, mode)
}

// Check tells whether Write could write a file, before the work whose result it is to hold. It changes nothing.
func Check(path string) error {
	path, err := Follow(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder: name a file in it", path)
	case isOpenFile(path) || err == nil && !info.Mode().IsRegular():
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // as a file is replaced, it counts who may write to its folder
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// maxLinks is how many links may lead to each other, as on Linux.
const maxLinks = 40

// Follow is where links lead, also to a file that isn't there yet. Files that a process has open are links only in name: it ends at them.
func Follow(path string) (string, error) {
	file := path
	for range maxLinks {
		target, err := os.Readlink(file)
		if err != nil || isOpenFile(file) {
			return file, nil //nolint:nilerr // no link: it is there, or is what will be made
		}
		if !filepath.IsAbs(target) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(file)) // ".." of a folder that is a link is not the one that has the link
			if err != nil {
				return "", fmt.Errorf("writing %s: %w", path, err)
			}
			target = filepath.Join(folder, target)
		}
		file = target
	}
	return "", fmt.Errorf("writing %s: more than %d links lead to it", path, maxLinks)
}

// isOpenFile tells whether a path names a file that a process has open, by the names that Linux and other systems have for these. It may be one that
// a shell redirected: others write to it as well, and would go on writing to what was replaced.
func isOpenFile(path string) bool {
	path = filepath.ToSlash(filepath.Clean(path))
	return path == "/dev/stdout" || path == "/dev/stderr" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/") && strings.Contains(path, "/fd/")
}

// writeTo writes behind what is there. An output of this process is used itself, because only so do both go on at the same place; info is nil if nobody
// knows what path is.
func writeTo(path string, info fs.FileInfo, content []byte) error {
	for _, own := range []*os.File{os.Stdout, os.Stderr} {
		if of, err := own.Stat(); err == nil && info != nil && os.SameFile(of, info) {
			_, err := own.Write(content)
			return err
		}
	}
	flags := os.O_WRONLY | os.O_APPEND
	if info != nil {
		// Although it is there: then the kernel refuses pipes that somebody else has put into a folder for everybody (fs.protected_fifos).
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
