//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	noOrphans(t)
	observeQuiet(t)
}

// stopBeside stops what hack/beside.sh runs beside these tests, since processor time is measured, and returns what lets it go on.
func stopBeside() (resume func()) {
	group, err := strconv.Atoi(os.Getenv("BESIDE_GROUP"))
	if err != nil || group <= 1 {
		return func() {}
	}
	_ = syscall.Kill(-group, syscall.SIGSTOP) // it may have ended
	return func() { _ = syscall.Kill(-group, syscall.SIGCONT) }
}

// looks is how often is looked when what was found can be of a machine that others use, too: processor time, or a probe that timed out. What is busy or
// unhealthy by itself is so each time.
const looks = 3

func observeQuiet(t *testing.T) {
	t.Helper()
	defer stopBeside()()
	for look := 1; ; look++ {
		report, err := quiet.Observe(t.Context(), quiet.Options{StateDir: stateDir, Settle: settle, Length: quietFor, Bounds: quiet.DefaultBounds(), Say: os.Stdout})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		report.Print(&text)
		t.Logf("what was seen:\n%s", text.String())
		if look < looks && report.MayBeTheMachine() {
			t.Logf("this may be of a machine that others use, so it is looked at again: %s", strings.Join(report.Problems, "; "))
			continue
		}
		for _, p := range report.Problems {
			t.Error(p)
			findings = append(findings, p)
		}
		return
	}
}

// noOrphans waits until Kubernetes' own collector has deleted the hosted cluster's pods of nodes that are gone. It looks each 20 s, and waits 40 s more
// before it believes that a node doesn't come back: longer than anything that looks settled to somebody who compares objects.
func noOrphans(t *testing.T) {
	eventually(t, 3*time.Minute, "no pods of nodes that are gone", func() error {
		k := hosted()
		nodes, err := k.try(t, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return fmt.Errorf("listing nodes: %w: %s", err, nodes)
		}
		pods, err := k.try(t, "get", "pods", "-A", "-o", `jsonpath={range .items[*]}{.metadata.name}={.spec.nodeName}{"\n"}{end}`)
		if err != nil {
			return fmt.Errorf("listing pods: %w: %s", err, pods)
		}
		for _, line := range strings.Fields(pods) {
			pod, node, _ := strings.Cut(line, "=")
			if node != "" && !slices.Contains(strings.Fields(nodes), node) {
				return fmt.Errorf("pod %s is of node %s", pod, node)
			}
		}
		return nil
	})
}
