//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"

	"hcp.internal/platform/test/adversary"
)

// meetAdversary plays a seed against the cluster that is up. It needs a demo cluster that is healthy, and leaves it so. The last lines of the adversary's log
// are those before the violation; docs/adversary.md says how a seed is played again.
//
// What is promised of time is played with slack: where this runs, machines are slow and do something else besides. make adversary has none.
func meetAdversary(t *testing.T, seed uint64, length time.Duration) {
	if testing.Short() {
		t.Skip("make e2e plays it; make test gates changes, and what clusters do when their processes are killed differs from run to run")
	}
	report, err := adversary.Run(t.Context(), adversary.Options{Seed: seed, Length: length, StateDir: stateDir, Root: root(t), Log: os.Stdout, Slack: 3})
	for _, v := range report.Violations {
		t.Errorf("seed %d: %s", seed, v)
		findings = append(findings, v.String())
	}
	if err != nil {
		findings = append(findings, err.Error())
		t.Fatalf("playing seed %d: %v", seed, err)
	}
	t.Logf("seed %d: %d steps met somebody, %d nobody", seed, report.Played, report.Skipped)
}
