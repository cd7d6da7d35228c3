package unit

import (
	"bytes"
	"fmt"
	"os"
	"sync"
)

const (
	// maxLog bounds a unit's log; the one before it is kept too.
	maxLog = 8 << 20
	// maxTail bounds what is shown of a log when a unit fails.
	maxTail = 2 << 10
)

// output is a unit's log. The unit writes to a pipe.
type output struct {
	path  string
	write *os.File // what processes get

	mu   sync.Mutex
	file *os.File
	size int64
	tail []byte
}

func newOutput(path string) (*output, error) {
	o := &output{path: path}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	o.file = file
	if info, err := file.Stat(); err == nil {
		o.size = info.Size()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	o.write = w
	go o.copy(r) // ends when every writer has closed
	return o, nil
}

func (o *output) copy(r *os.File) {
	defer r.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			o.add(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// add appends to the log. That a disk is full must not stop the unit, so errors are dropped.
func (o *output) add(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size > maxLog {
		if err := os.Rename(o.path, o.path+".1"); err == nil {
			if file, err := os.OpenFile(o.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640); err == nil {
				o.file.Close()
				o.file, o.size = file, 0
			}
		}
	}
	n, _ := o.file.Write(p)
	o.size += int64(n)
	o.tail = append(o.tail, p...)
	if len(o.tail) > maxTail {
		o.tail = append([]byte(nil), o.tail[len(o.tail)-maxTail:]...)
	}
}

// last returns the last lines, at most n.
func (o *output) last(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(o.tail), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
