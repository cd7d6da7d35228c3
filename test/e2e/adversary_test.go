//go:build e2e && live

package e2e

import (
	"os"
	"testing"
	"time"

	"hcp.internal/platform/test/adversary"
)

// TestLiveAdversary plays one short seed against the cluster that is up. make adversary plays others, and longer.
func TestLiveAdversary(t *testing.T) { meetAdversary(t, 1, 5*time.Minute) }

// meetAdversary needs a demo cluster that is healthy, and leaves it so.
func meetAdversary(t *testing.T, seed uint64, length time.Duration) {
	report, err := adversary.Run(t.Context(), adversary.Options{Seed: seed, Length: length, StateDir: stateDir, Root: root(t), Log: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("seed %d: %s", seed, v)
	}
	t.Logf("%d steps met somebody, %d nobody", report.Played, report.Skipped)
}
