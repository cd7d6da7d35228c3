package dump

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// writeArchive packs files, which are below dir, sorted by name. Whatever else is in dir stays out: it may be anybody's.
func writeArchive(dir, archive string, files []string) error {
	// Written beside and renamed, so that an interrupted run leaves no broken archive.
	file, err := os.CreateTemp(dir, ".dump-*")
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails when it was renamed, which is the end that is meant
	zipped := gzip.NewWriter(file)
	packed := tar.NewWriter(zipped)
	var errs []error
	for _, path := range slices.Compact(slices.Sorted(slices.Values(files))) {
		errs = append(errs, addFile(packed, dir, path))
	}
	if err := errors.Join(append(errs, packed.Close(), zipped.Close(), file.Close())...); err != nil {
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
