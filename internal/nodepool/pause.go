package nodepool

import (
	"strconv"
	"time"
)

// pause is what spec.pausedUntil asks for. The zero pause is none.
type pause struct {
	active bool
	// until is when it ends; zero for one without an end.
	until time.Time
	// invalid: the value could not be parsed, and nothing is paused.
	invalid bool
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
		return pause{invalid: true}
	}
	return pause{active: now.Before(until), until: until}
}
