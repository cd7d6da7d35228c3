package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeArchive packs the regular files below dir, sorted by name. The archive itself and older ones stay out.
func writeArchive(dir, archive string) (err error) {
	// Written beside and renamed, so that an interrupted run leaves no broken archive.
	file, err := os.CreateTemp(dir, ".dump-*")
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails when it was renamed, which is the end that is meant
	zipped := gzip.NewWriter(file)
	packed := tar.NewWriter(zipped)
	walkErr := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || path == file.Name() || path == archive {
			return err
		}
		return addFile(packed, dir, path)
	})
	if err := errors.Join(walkErr, packed.Close(), zipped.Close(), file.Close()); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return os.Rename(file.Name(), archive)
}

func addFile(packed *tar.Writer, dir, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := packed.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.CopyN(packed, file, info.Size())
	return err
}
