package kubeconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hcp.internal/platform/internal/atomicfile"
)

// maxLinks is how many links may lead to a file; Linux follows no more.
const maxLinks = 40

// writePrivate writes a file that only its owner can read, also when it was there before and others could. It is there as a whole or not at all. A link stays,
// and what it leads to is written. What is no file, a device or a pipe, gets the content and stays as it is.
func writePrivate(path string, content []byte) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular() && !info.IsDir():
		return writeThrough(path, content)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("writing %s: %w", path, err)
	}
	file, err := followed(path)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return atomicfile.Write(file, content, 0o600)
}

// followed is the file that a path leads to by links. It need not be there yet.
func followed(path string) (string, error) {
	for range maxLinks {
		real, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // no link: it is what will be made
		}
		if !filepath.IsAbs(to) {
			// Resolved first: ".." of a folder that is a link is not the one that has the link.
			folder, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			to = filepath.Join(folder, to)
		}
		path = to
	}
	return "", fmt.Errorf("more than %d links lead to it", maxLinks)
}

// writeThrough writes to what is there and can't be replaced.
func writeThrough(path string, content []byte) error {
	// With O_CREATE, although it is there: then the kernel refuses pipes that somebody else has put into a folder for everybody (fs.protected_fifos).
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err // it names the file
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// readByOthers says whether w is a file that others than its owner can read, and its permissions.
func readByOthers(w io.Writer) (fs.FileMode, bool) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&0o044 != 0
}
