package hostedcontrolplane

import (
	"fmt"
	"strconv"
	"time"
)

// pause is what spec.pausedUntil asks for. The zero pause is none.
type pause struct {
	active bool
	// until is when it ends; zero for a pause without an end.
	until time.Time
	// invalid is the value when it could not be parsed, in which case nothing is paused.
	invalid string
}

// parsePause reads a point in time of RFC 3339 or a boolean.
func parsePause(value *string, now time.Time) pause {
	if value == nil || *value == "" {
		return pause{}
	}
	if forever, err := strconv.ParseBool(*value); err == nil {
		return pause{active: forever}
	}
	until, err := time.Parse(time.RFC3339, *value)
	if err != nil {
		return pause{invalid: *value}
	}
	return pause{active: now.Before(until), until: until}
}

func (p pause) String() string {
	if p.until.IsZero() {
		return "spec.pausedUntil pauses reconciliation until it is removed"
	}
	return fmt.Sprintf("spec.pausedUntil pauses reconciliation until %s", p.until.UTC().Format(time.RFC3339))
}
