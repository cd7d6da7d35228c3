package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"hcp.internal/platform/internal/contract/backups"
)

// volume keeps files in a folder. Everything goes through an os.Root, which no name leads out of, not by a link either.
type volume struct {
	root   *os.Root
	bucket string
}

// partEnd marks files that are being written.
const partEnd = ".part"

func openVolume(dir, bucket string) (Store, error) {
	if bucket == "" || bucket != path.Base(bucket) || bucket == "." || bucket == ".." {
		return nil, fmt.Errorf("bucket %q is not the name of a folder", bucket)
	}
	top, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the volume of backups: %w", err)
	}
	defer func() { _ = top.Close() }() // the folder below it stays open by itself
	if err := top.Mkdir(bucket, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making folder %s in the volume of backups: %w", bucket, err)
	}
	root, err := top.OpenRoot(bucket)
	if err != nil {
		return nil, fmt.Errorf("opening folder %s in the volume of backups: %w", bucket, err)
	}
	return volume{root, bucket}, nil
}

func (v volume) URL(name string) string { return backups.Scheme + v.bucket + "/" + name }

// Put writes beside and renames, so that a file is there whole or not at all.
func (v volume) Put(_ context.Context, name string, body io.Reader) (err error) {
	if _, err := v.root.Stat(name); err == nil {
		return fmt.Errorf("writing %s: %w", v.URL(name), ErrExists)
	}
	if err := v.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", v.URL(name), err)
	}
	part := name + partEnd
	f, err := v.root.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing %s: %w", v.URL(name), err)
	}
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		// A link fails where the name has been taken since.
		err = v.root.Link(part, name)
	}
	if removed := v.root.Remove(part); err == nil {
		err = removed
	}
	if errors.Is(err, fs.ErrExist) {
		err = ErrExists
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", v.URL(name), err)
	}
	return nil
}

func (v volume) Get(_ context.Context, name string) (io.ReadCloser, int64, error) {
	f, err := v.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", v.URL(name), err)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, errors.Join(fmt.Errorf("reading %s: it is no file", v.URL(name)), err, f.Close())
	}
	return f, info.Size(), nil
}

func (v volume) List(_ context.Context, prefix string, most int) ([]Item, error) {
	var items []Item
	dir := strings.TrimSuffix(path.Dir(prefix+"x"), "/")
	err := fs.WalkDir(v.root.FS(), filepath.ToSlash(dir), func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.Type().IsRegular() && strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, partEnd):
			info, err := d.Info()
			if err != nil {
				return err
			}
			items = append(items, Item{Name: name, Bytes: info.Size(), Modified: info.ModTime()})
		}
		if len(items) >= most {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", v.URL(prefix), err)
	}
	return items, nil
}

func (v volume) Delete(_ context.Context, name string) error {
	if err := v.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting %s: %w", v.URL(name), err)
	}
	return nil
}
