package supervisor

import (
	"fmt"
	"os"
	"sync"
)

const (
	// maxLogBytes is the size at which a log is rotated; one older file is kept beside it.
	maxLogBytes = 20 << 20
)

// logFile is a file that never grows far past a limit: at the limit it becomes "<path>.1" and starts anew.
type logFile struct {
	path  string
	limit int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLog opens the log of a program that writes it by itself, after the caller has ended perhaps. One that has reached the limit of logs becomes "<path>.1" first.
func OpenLog(path string) (*os.File, error) {
	l, err := openLog(path, maxLogBytes)
	if err != nil {
		return nil, err
	}
	if l.size < l.limit {
		return l.file, nil
	}
	l.rotate()
	if err := l.open(); err != nil {
		return nil, err
	}
	return l.file, nil
}

func openLog(path string, limit int64) (*logFile, error) {
	l := &logFile{path: path, limit: limit}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening log %s: %w", l.path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("opening log %s: %w", l.path, err)
	}
	l.file, l.size = f, info.Size()
	return nil
}

// rotate puts the file away; it is to be opened again.
func (l *logFile) rotate() {
	_ = l.file.Close()
	l.file = nil
	_ = os.Rename(l.path, l.path+".1")
}

// Write never fails: a full disk must not end the process that logs.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && l.size+int64(len(p)) > l.limit && l.size > 0 {
		l.rotate()
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return len(p), nil
		}
	}
	n, _ := l.file.Write(p)
	l.size += int64(n)
	return len(p), nil
}
