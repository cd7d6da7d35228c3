//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"hcp.internal/platform/internal/local/quiet"
)

const (
	// quietFor is how long a settled hosted cluster is watched.
	quietFor = 60 * time.Second
	// settle is how long the clusters may take after the last change before the watch begins.
	settle = 3 * time.Minute
)

// staysQuiet watches everything for a minute: every object of every resource of both API servers, the requests of each client, and the
// processor time of each program. Bounds of processor time are part of what is promised, so they are asserted here, though they are timings:
// they are of time on the processor, not on the wall, and many times what is used.
func staysQuiet(t *testing.T) {
	report, err := quiet.Observe(t.Context(), quiet.Options{StateDir: stateDir, Settle: settle, Length: quietFor, Bounds: quiet.DefaultBounds(), Say: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	report.Print(&text)
	t.Logf("what was seen:\n%s", text.String())
	for _, p := range report.Problems {
		t.Error(p)
	}
}
