// Package audittail copies a growing, rotated log file to standard output, as `tail -c +1 -F` does.
//
// kube-apiserver rotates its audit log by renaming the file and opening a new one of the same name. The tail then reads the
// renamed file to its end before it goes on with the new one, so that no line is lost. Memory use doesn't depend on the
// length of lines or files: bytes are copied through one fixed buffer.
package audittail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// bufferSize is the only memory that following needs.
const bufferSize = 32 << 10

// Tail follows a file.
type Tail struct {
	Path string
	Out  io.Writer
	// Interval between two looks at a file that had nothing new.
	Interval time.Duration
}

// Run copies until ctx ends (nil) or the file can't be read or the output not be written. A missing file is waited for.
func (t Tail) Run(ctx context.Context) error {
	buf := make([]byte, bufferSize)
	var file *os.File
	defer func() { closeFile(file) }()
	for {
		if file == nil {
			opened, err := openIfThere(t.Path)
			if err != nil {
				return err
			}
			file = opened
		}
		if file != nil {
			if err := t.drain(ctx, file, buf); err != nil {
				return err
			}
			replaced, err := t.replaced(file)
			if err != nil {
				return err
			}
			if replaced {
				// What was written between the last read and the rename.
				if err := t.drain(ctx, file, buf); err != nil {
					return err
				}
				closeFile(file)
				file = nil
				continue
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(t.Interval):
		}
	}
}

// drain copies from the file's current place to its end.
func (t Tail) drain(ctx context.Context, file *os.File, buf []byte) error {
	for ctx.Err() == nil {
		n, err := file.Read(buf)
		if n > 0 {
			if _, err := t.Out.Write(buf[:n]); err != nil {
				return fmt.Errorf("writing output: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", t.Path, err)
		}
	}
	return nil
}

// replaced says whether the path no longer names the open file; a file that was cut short in place is read from its start.
func (t Tail) replaced(file *os.File) (bool, error) {
	open, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("reading size of %s: %w", t.Path, err)
	}
	named, err := os.Stat(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // between rename and create: more may still come into the open file
	}
	if err != nil {
		return false, fmt.Errorf("looking for %s: %w", t.Path, err)
	}
	if !os.SameFile(open, named) {
		return true, nil
	}
	offset, err := file.Seek(0, io.SeekCurrent)
	if err == nil && open.Size() < offset {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return false, fmt.Errorf("seeking in %s: %w", t.Path, err)
	}
	return false, nil
}

func openIfThere(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	return file, nil
}

func closeFile(f *os.File) {
	if f != nil {
		_ = f.Close() // read-only: nothing to lose
	}
}
