// Package rolls is the note on a NodePool of what its machines were made from, and why they were replaced before.
//
// The operator writes it together with a change of what machines are made from, and whoever explains a replacement reads it. It holds names, versions
// and digests, and nothing of what ConfigMaps and Secrets contain.
package rolls

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hcp.internal/platform/internal/clip"
)

// Bounds of a note. The annotations of an object have 256 KiB in all; a note of the largest size has about 50 KiB.
const (
	maxRolls   = 5
	maxChanges = 10
	maxInputs  = 60
	maxText    = 120
	maxNote    = 64 << 10
)

// Note is what the annotation holds, as JSON.
type Note struct {
	// Hash of the inputs, as in names of the pool's Secrets.
	Hash string `json:"hash"`
	// Inputs are what the hash was computed from, by the name that users know: a field, or a ConfigMap. Long values are digests.
	Inputs map[string]string `json:"inputs"`
	// Rolls are the last replacements, the newest first.
	Rolls []Roll `json:"rolls,omitempty"`

	// Request is what users asked for as of the last pass; nil: an older operator wrote the note.
	Request *Request `json:"request,omitempty"`
	// Asked is when they last asked for something else.
	Asked time.Time `json:"asked,omitzero"`
	// Held is the hash of machines that nobody asked for; empty: nothing is held.
	Held string `json:"held,omitempty"`
}

// Roll is a replacement of all machines.
type Roll struct {
	At   time.Time `json:"at"`
	From string    `json:"from"`
	To   string    `json:"to"`
	// Changes are the inputs that differ, such as "spec.release: 1.36.2 → 1.36.3".
	Changes []string `json:"changes"`
}

// Parse reads a note. What is none, or too long to be one, gives the zero Note and false.
func Parse(text string) (Note, bool) {
	var n Note
	if text == "" || len(text) > maxNote || json.Unmarshal([]byte(text), &n) != nil || n.Hash == "" {
		return Note{}, false
	}
	n.Rolls = n.Rolls[:min(len(n.Rolls), maxRolls)]
	return n, true
}

// Next is the note for inputs that machines are made from as of now, and false when it says nothing new. The first note of a pool tells of no
// replacement: what its machines were made from before is not known.
func Next(old Note, known bool, hash string, inputs map[string]string, now time.Time) (Note, bool) {
	if known && old.Hash == hash {
		return old, false
	}
	n := Note{Hash: hash, Inputs: bounded(inputs), Request: old.Request, Asked: old.Asked}
	if known {
		n.Rolls = append(n.Rolls, Roll{At: now.UTC().Truncate(time.Second), From: old.Hash, To: hash, Changes: Changes(old.Inputs, n.Inputs)})
		n.Rolls = append(n.Rolls, old.Rolls...)
		n.Rolls = n.Rolls[:min(len(n.Rolls), maxRolls)]
	}
	return n, true
}

func bounded(inputs map[string]string) map[string]string {
	out := map[string]string{}
	for i, k := range slices.Sorted(maps.Keys(inputs)) {
		if i == maxInputs {
			break
		}
		out[clip.Over(k, maxText, "…")] = clip.Over(inputs[k], maxText, "…")
	}
	return out
}

// Changes says which inputs differ, and from what to what, by name.
func Changes(before, after map[string]string) []string {
	all := map[string]bool{}
	for k := range before {
		all[k] = true
	}
	for k := range after {
		all[k] = true
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		was, had := before[k]
		is, has := after[k]
		switch {
		case had && has && was == is:
			continue
		case !had:
			out = append(out, fmt.Sprintf("%s: added (%s)", k, is))
		case !has:
			out = append(out, fmt.Sprintf("%s: removed (was %s)", k, was))
		default:
			out = append(out, fmt.Sprintf("%s: %s → %s", k, was, is))
		}
	}
	if len(out) > maxChanges {
		out = append(out[:maxChanges], fmt.Sprintf("and %d more", len(out)-maxChanges))
	}
	return out
}

// Text writes a note.
func (n Note) Text() (string, error) {
	raw, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encoding the note about replacements: %w", err)
	}
	return string(raw), nil
}

// String tells a replacement in a sentence.
func (r Roll) String() string {
	if len(r.Changes) == 0 {
		return fmt.Sprintf("the inputs of machines changed from %s to %s", r.From, r.To)
	}
	return strings.Join(r.Changes, "; ") + fmt.Sprintf(" (%s → %s)", r.From, r.To)
}
