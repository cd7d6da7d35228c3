// Package terminal shows text of others on somebody's terminal.
//
// Messages of conditions, names in packages and logs are written by tenants, and whoever looks for a fault reads them as an administrator. A terminal obeys
// some characters: they move the cursor over other lines, change the window's title, put words into the clipboard. kubectl replaces them in its tables for
// that reason (CVE-2021-25743). Here all commands write through one [Writer].
package terminal

import (
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"
)

// clearLine goes to the begin of a line and deletes it.
const clearLine = "\r\033[K"

// Output is what commands write to: f itself, or a Writer if f is a terminal. A file or a pipe gets all bytes as they are.
func Output(f *os.File) io.Writer {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return f
	}
	return &Writer{to: f, file: f}
}

// File is the file behind an output, for a program that gets the terminal for itself; another writer is returned as it is.
func File(w io.Writer) io.Writer {
	if t, ok := w.(*Writer); ok && t.file != nil {
		return t.file
	}
	return w
}

// Rewritable says whether lines of w can be written over: it is a terminal, neither a dumb one nor one of continuous integration.
func Rewritable(w io.Writer) bool {
	f, ok := File(w).(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
}

// ClearLine begins the present line anew.
func ClearLine(w io.Writer) {
	if t, ok := w.(*Writer); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		w = t.to
	}
	_, _ = io.WriteString(w, clearLine) // a terminal that is gone is noticed by the next line
}

// Writer replaces what a terminal would obey, and marks that change the direction of writing. Line ends and tabs stay. It is safe for concurrent use.
type Writer struct {
	to   io.Writer
	file *os.File // nil: none

	mu   sync.Mutex
	part []byte // the begin of a character
}

// Write implements io.Writer. A character that is cut off is kept for the next call.
func (t *Writer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := append(t.part, p...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		out = append(out, shown(r, text[:size])...)
		text = text[size:]
	}
	t.part = append([]byte(nil), text...)
	if _, err := t.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// shown is what is written for a character: control characters as ^X, as cat -v does.
func shown(r rune, raw []byte) []byte {
	switch {
	case r == '\n', r == '\t':
		return raw
	case r < ' ', r == 0x7f:
		return []byte{'^', byte(r) ^ 0x40}
	case r == utf8.RuneError, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
		return []byte("\uFFFD")
	}
	return raw
}
