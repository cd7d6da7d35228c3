// Package journal keeps what became of the conditions of an object: each transition with its time, the last 200 of them, in a ConfigMap beside the
// object that goes with it.
//
// It follows the status: a controller that has written a status tells the Book of it. The Book compares with what the journal says last, so nothing is
// lost when a process dies between the two writes, and nothing is written while nothing changes. Only the status and the reason count: messages may
// hold numbers that move.
package journal

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/clip"
)

// Bounds of a journal.
const (
	// MaxEntries is how many transitions are kept.
	MaxEntries = 200
	// MaxBytes bounds the text of all.
	MaxBytes = 32 << 10
	// maxMessage is what is kept of a message.
	maxMessage = 200
)

// Entry is a transition.
type Entry struct {
	// At is when the status moved, as the condition says; for a new reason of the same status when that was seen.
	At time.Time `json:"at"`
	// Type of the condition.
	Type string `json:"type"`
	// From is the status before; empty: the condition was not there.
	From metav1.ConditionStatus `json:"from,omitempty"`
	// To is the status after; empty: the condition went.
	To     metav1.ConditionStatus `json:"to,omitempty"`
	Reason string                 `json:"reason,omitempty"`
	// Message is cut at 200 bytes.
	Message string `json:"message,omitempty"`
}

// Next is the journal after conditions were seen, and false when there is nothing to add. Transitions of one moment are in the order of their times,
// then of their types. The oldest entries make room, but never one that is the last of its type: those say how things are.
func Next(have []Entry, conditions []metav1.Condition, now time.Time) ([]Entry, bool) {
	last := latest(have)
	var more []Entry
	seen := map[string]bool{}
	for _, c := range conditions {
		seen[c.Type] = true
		was, known := last[c.Type]
		if known && was.To == c.Status && was.Reason == c.Reason {
			continue
		}
		e := Entry{At: c.LastTransitionTime.UTC(), Type: c.Type, From: was.To, To: c.Status, Reason: c.Reason, Message: clip.Over(oneLine(c.Message), maxMessage, "…")}
		if e.At.IsZero() || known && was.To == c.Status {
			e.At = now.UTC().Truncate(time.Second)
		}
		more = append(more, e)
	}
	for kind, was := range last {
		if !seen[kind] && was.To != "" {
			more = append(more, Entry{At: now.UTC().Truncate(time.Second), Type: kind, From: was.To})
		}
	}
	if len(more) == 0 {
		return have, false
	}
	slices.SortFunc(more, func(a, b Entry) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Type, b.Type)) })
	// What was seen later is later, whatever clocks say: the order in which it was written down is the order of the journal.
	return bounded(append(slices.Clone(have), more...)), true
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func latest(list []Entry) map[string]Entry {
	out := map[string]Entry{}
	for _, e := range list {
		out[e.Type] = e
	}
	return out
}

// bounded drops what is oldest until the rest fits.
func bounded(list []Entry) []Entry {
	sizes, total := make([]int, len(list)), 0
	newest := map[string]int{}
	for i, e := range list {
		raw, _ := json.Marshal(e) // strings and a time: it can't fail
		sizes[i] = len(raw) + 1
		total += sizes[i]
		newest[e.Type] = i
	}
	left := len(list)
	if left <= MaxEntries && total <= MaxBytes {
		return list
	}
	out := make([]Entry, 0, left)
	for i, e := range list {
		if (left > MaxEntries || total > MaxBytes) && (newest[e.Type] != i || e.To == "") {
			left, total = left-1, total-sizes[i]
			continue
		}
		out = append(out, e)
	}
	// More types than fit: a kind of object has some forty, so this is a broken writer.
	for len(out) > MaxEntries || total > MaxBytes {
		raw, _ := json.Marshal(out[0])
		total, out = total-len(raw)-1, out[1:]
	}
	return out
}

// Text writes a journal, one entry a line.
func Text(list []Entry) string {
	var b strings.Builder
	for _, e := range list {
		raw, _ := json.Marshal(e) // as above
		b.Write(raw)
		b.WriteByte('\n')
	}
	return b.String()
}

// Parse reads a journal. Lines that are no entries are left out: somebody may have edited it.
func Parse(text string) []Entry {
	var out []Entry
	for line := range strings.SplitSeq(clip.To(text, 2*MaxBytes), "\n") {
		var e Entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Type != "" {
			out = append(out, e)
		}
	}
	return out[:min(len(out), MaxEntries)]
}

// FirstFailure is the transition with which the present trouble began: the first in the journal to a status that is not good since the last moment at
// which everything was. good says which status of a condition is good; false for one that does not count. Nil: nothing is wrong, or the journal does not
// reach back.
func FirstFailure(list []Entry, good func(kind string, status metav1.ConditionStatus) (isGood, counts bool)) *Entry {
	bad := map[string]bool{}
	var first *Entry
	for i := range list {
		e := &list[i]
		isGood, counts := good(e.Type, e.To)
		if !counts {
			continue
		}
		if e.To == "" || isGood {
			delete(bad, e.Type)
			if len(bad) == 0 {
				first = nil
			}
			continue
		}
		if bad[e.Type] = true; first == nil {
			first = e
		}
	}
	return first
}
