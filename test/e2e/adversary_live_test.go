//go:build e2e && live

package e2e

import (
	"testing"
	"time"
)

// TestLiveAdversary plays one short seed against the cluster that is up. make adversary plays others, and longer.
func TestLiveAdversary(t *testing.T) { meetAdversary(t, 1, 5*time.Minute) }
