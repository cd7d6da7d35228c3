// Package bounded reads whole files of which nobody knows beforehand how long they are.
package bounded

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of at most most bytes. A longer one is an error, and no more than most+1 bytes of it are read. Errors name the path; that of a file that
// can't be opened is an *fs.PathError.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return content, nil
}
