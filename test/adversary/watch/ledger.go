// Package watch holds a local cluster to what is promised, all the time and from outside: what was acknowledged is there, budgets of rollouts hold, nobody
// reads what is another's, and nothing is left.
package watch

import (
	"fmt"
	"slices"
	"sync"
)

// Ledger knows what one writer has tried to write, and what was acknowledged. Each key's values count upwards.
type Ledger struct {
	mu      sync.Mutex
	entries map[string]entry
}

type entry struct{ tried, acked int }

// Try is called before a value is written.
func (l *Ledger) Try(key string, value int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[string]entry{}
	}
	e := l.entries[key]
	e.tried = max(e.tried, value)
	l.entries[key] = e
}

// Acked is called when the server has said that it was written.
func (l *Ledger) Acked(key string, value int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.acked = max(e.acked, value)
	l.entries[key] = e
}

// Next is a value that was never tried.
func (l *Ledger) Next(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key].tried + 1
}

// Keys are those of which something was acknowledged, sorted.
func (l *Ledger) Keys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for key, e := range l.entries {
		if e.acked > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Check judges what a server shows; found is false when it shows nothing. A value that was tried and never acknowledged may be there or not.
func (l *Ledger) Check(key string, value int, found bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	switch {
	case !found && e.acked > 0:
		return fmt.Errorf("%s isn't there; value %d was acknowledged", key, e.acked)
	case found && value < e.acked:
		return fmt.Errorf("%s has value %d; value %d was acknowledged", key, value, e.acked)
	case found && value > e.tried:
		return fmt.Errorf("%s has value %d; nobody wrote more than %d", key, value, e.tried)
	}
	return nil
}
