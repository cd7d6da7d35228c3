// Package upgrades is what the hypershift-operator and those who explain it agree on about control planes that go back to the last good release when an
// upgrade fails.
package upgrades

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// ReturnAnnotation on a HostedCluster has its control plane go back to the last release that was rolled out completely when an upgrade fails. Its value
	// is "true", or how long the upgrade may fail before that, as a duration between MinPatience and MaxPatience. Absent or "false": it stays where it is.
	ReturnAnnotation = "hypershift.openshift.io/return-failed-upgrade"
	// ReturnedAnnotation on a HostedCluster notes, as JSON of a Note, that its control plane went back. The operator writes it, and takes it off when another
	// release is asked for. Who takes it off by hand has the release tried once more.
	ReturnedAnnotation = "hypershift.openshift.io/returned-upgrade"
)

// Bounds of the value of ReturnAnnotation, and what "true" means.
const (
	MinPatience     = time.Minute
	DefaultPatience = 10 * time.Minute
	MaxPatience     = 24 * time.Hour
)

// Returned is a condition of HostedClusters with ReturnAnnotation or ReturnedAnnotation: True once the control plane went back, and False before, with one of
// the reasons below.
const Returned = "UpgradeReturned"

// Reasons of Returned.
const (
	// FailedReason: the upgrade failed, and the control plane has, or gets, the release of before.
	FailedReason = "UpgradeFailed"
	// NotFailedReason: no upgrade fails.
	NotFailedReason = "NoUpgradeFailed"
	// FailingReason: an upgrade fails, and time is left for it.
	FailingReason = "UpgradeFailing"
	// ImpossibleReason: an upgrade has failed, and there is no way back. The message says why.
	ImpossibleReason = "CannotReturn"
	// InvalidReason: the value of ReturnAnnotation means nothing.
	InvalidReason = "InvalidReturnValue"
)

// Note is what is remembered of a return.
type Note struct {
	// From is the release image that was asked for and failed, To the one that the control plane has instead, as its history names it.
	From string `json:"from"`
	To   string `json:"to"`
	// FromVersion and ToVersion are their versions.
	FromVersion string `json:"fromVersion"`
	ToVersion   string `json:"toVersion"`
	// At is when it went back, Why what had failed: one line.
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty"`
}

// Text is the value of ReturnedAnnotation.
func (n Note) Text() (string, error) {
	raw, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("writing the note about a return: %w", err)
	}
	return string(raw), nil
}

// maxNote bounds what is read: anybody who may write the object may write an annotation.
const maxNote = 4 << 10

// ParseNote reads the value of ReturnedAnnotation.
func ParseNote(text string) (Note, error) {
	n := Note{}
	if len(text) > maxNote {
		return n, fmt.Errorf("the note about a return has %d bytes, more than %d", len(text), maxNote)
	}
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return n, fmt.Errorf("reading the note about a return: %w", err)
	}
	if n.From == "" || n.To == "" || n.From == n.To {
		return n, errors.New("the note about a return names no two releases")
	}
	return n, nil
}

// Patience reads the value of ReturnAnnotation; 0: it is off.
func Patience(value string) (time.Duration, error) {
	switch value {
	case "", "false":
		return 0, nil
	case "true":
		return DefaultPatience, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < MinPatience || d > MaxPatience {
		return 0, fmt.Errorf("annotation %s is %q: write true, false, or how long an upgrade may fail, between 1m and 24h", ReturnAnnotation, value)
	}
	return d, nil
}
