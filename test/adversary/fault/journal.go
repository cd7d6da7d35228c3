package fault

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"hcp.internal/platform/test/adversary/world"
)

// Harm is what has to be undone. One of its parts is set.
type Harm struct {
	// Stopped are processes that wait for SIGCONT.
	Stopped []world.Process `json:"stopped,omitempty"`
	// Network is the number (inode) of a network namespace with a table of ours.
	Network uint64 `json:"network,omitempty"`
}

// line of a journal: harm that is about to be done, or that was undone.
type line struct {
	ID     int   `json:"id"`
	Harm   *Harm `json:"harm,omitempty"`
	Undone bool  `json:"undone,omitempty"`
}

// Journal keeps what has to be undone in a file, so that somebody else can when we are killed. What is written is on the disk before harm is done.
// Undoing twice harms nobody.
type Journal struct {
	mu   sync.Mutex
	file *os.File
	next int
	open map[int]Harm
}

// OpenJournal opens or makes the file. What an earlier process left open is in Left.
func OpenJournal(path string) (*Journal, error) {
	j := &Journal{open: map[int]Harm{}}
	raw, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		defer raw.Close()
		for lines := bufio.NewScanner(raw); lines.Scan(); {
			l := line{}
			if json.Unmarshal(lines.Bytes(), &l) != nil {
				continue // the last line of one who was killed while writing: harm was not done yet
			}
			j.next = max(j.next, l.ID)
			if l.Harm != nil {
				j.open[l.ID] = *l.Harm
			}
			if l.Undone {
				delete(j.open, l.ID)
			}
		}
	}
	// A new line first: the last one may have been cut off.
	if j.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	_, err = j.file.WriteString("\n")
	return j, err
}

// Do notes harm. The function that it returns undoes it, once.
func (j *Journal) Do(h Harm) (undo func() error, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next++
	id := j.next
	if err := j.write(line{ID: id, Harm: &h}); err != nil {
		return nil, fmt.Errorf("noting in the journal what has to be undone: %w", err)
	}
	j.open[id] = h
	return func() error { return j.undo(id) }, nil
}

func (j *Journal) undo(id int) error {
	j.mu.Lock()
	h, ok := j.open[id]
	j.mu.Unlock()
	if !ok {
		return nil
	}
	if err := h.undo(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, id)
	return j.write(line{ID: id, Undone: true})
}

// UndoAll undoes whatever is open, also of those before us.
func (j *Journal) UndoAll() (undone int, err error) {
	j.mu.Lock()
	var ids []int
	for id := range j.open {
		ids = append(ids, id)
	}
	j.mu.Unlock()
	for _, id := range ids {
		e := j.undo(id)
		if e == nil {
			undone++
		}
		err = errors.Join(err, e)
	}
	return undone, err
}

func (j *Journal) write(l line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(raw, '\n')); err != nil {
		return err
	}
	return j.file.Sync()
}

// Close leaves the file, for whoever comes next.
func (j *Journal) Close() error { return j.file.Close() }

func (h Harm) undo() error {
	var errs []error
	for _, p := range h.Stopped {
		if err := signal(p, unix.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("continuing %s, process %d: %w", p.Program, p.PID, err))
		}
	}
	if h.Network != 0 {
		errs = append(errs, reconnect(h.Network))
	}
	return errors.Join(errs...)
}
