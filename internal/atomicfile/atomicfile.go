// Package atomicfile replaces files in one step.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write gives a file content and permissions, which the umask does not change. Whoever reads it, and whoever finds it after a crash, sees the old content or
// the new one, never a part. Its folder must exist; for a moment a file that begins with a dot is beside it. An error names the file.
func Write(path string, content []byte, mode fs.FileMode) error {
	if err := write(path, content, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func write(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // nobody else may read it yet
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
