// Package pause reads spec.pausedUntil of HostedClusters, HostedControlPlanes and NodePools, so that everybody who holds still
// during a pause means the same by it.
package pause

import (
	"strconv"
	"time"
)

// Pause is what spec.pausedUntil asks for at some time. The zero Pause is none.
type Pause struct {
	// Active says that nothing is to be changed.
	Active bool
	// Until is when an active pause ends; zero for one that lasts until the field changes.
	Until time.Time
	// Invalid says that the value is neither a time nor a boolean, and so pauses nothing.
	Invalid bool
}

// At reads a point in time of RFC 3339 or a boolean. No value, an empty one, and a time that is not after now pause nothing.
func At(value *string, now time.Time) Pause {
	if value == nil || *value == "" {
		return Pause{}
	}
	if forever, err := strconv.ParseBool(*value); err == nil {
		return Pause{Active: forever}
	}
	until, err := time.Parse(time.RFC3339, *value)
	switch {
	case err != nil:
		return Pause{Invalid: true}
	case now.Before(until):
		return Pause{Active: true, Until: until}
	}
	return Pause{}
}

// Left is how long after now the pause ends, and 0 when it is none or ends only with a change of the field.
func (p Pause) Left(now time.Time) time.Duration {
	if p.Until.IsZero() {
		return 0
	}
	return p.Until.Sub(now)
}
