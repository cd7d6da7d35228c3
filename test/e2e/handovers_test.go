//go:build e2e && (upgrade || live || sizes || install)

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// reachesEtcd is what may pass between the moment that a client sends a write and the one at which a member proposes it to the others.
	reachesEtcd = 500 * time.Millisecond
	// followAgain is how often it is looked whether a member has logs that nobody follows.
	followAgain = 200 * time.Millisecond
)

// handovers are the times at which members of etcd have no leader, by their own logs. Raft drops what it is asked to write then, etcd tells nobody, and the
// API server waits for seven seconds: a write may fail in these milliseconds, which nothing that asks etcd can change. A read may not.
type handovers struct {
	ended sync.WaitGroup

	mu   sync.Mutex
	gaps []gap
}

// gap is a time without a leader, as one member says.
type gap struct{ from, to time.Time }

// watchHandovers follows the logs of the members in a control-plane namespace, also of pods that come later, until the test ends.
func watchHandovers(t *testing.T, namespace string, members int) *handovers {
	t.Helper()
	h := &handovers{}
	ctx, cancel := context.WithCancel(context.Background())
	for i := range members {
		h.ended.Go(func() {
			for ctx.Err() == nil {
				h.follow(ctx, t, namespace, fmt.Sprintf("etcd-%d", i))
				select {
				case <-ctx.Done():
				case <-time.After(followAgain):
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); h.ended.Wait() })
	return h
}

// follow reads the logs of a pod until it ends. What was read before is read again and changes nothing.
func (h *handovers) follow(ctx context.Context, t *testing.T, namespace, pod string) {
	cmd := exec.CommandContext(ctx, filepath.Join(root(t), "bin", "kubectl"), "--kubeconfig", management().kubeconfig, "logs", "-f", "-n", namespace, pod, "-c", "etcd")
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return // the next look tells
	}
	var lost time.Time
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var said struct {
			TS  time.Time `json:"ts"`
			Msg string    `json:"msg"`
		}
		switch err := json.Unmarshal(lines.Bytes(), &said); {
		case err != nil: // a line of another program
		case strings.HasPrefix(said.Msg, "leadership transfer starting"): // by the leader, which takes nothing more from now on
			lost = said.TS
		case strings.Contains(said.Msg, " lost leader ") && lost.IsZero():
			lost = said.TS
		case strings.Contains(said.Msg, " elected leader ") && !lost.IsZero():
			h.note(gap{lost, said.TS})
			lost = time.Time{}
		case strings.Contains(said.Msg, " changed leader from "):
			h.note(gap{said.TS, said.TS})
		}
	}
	_ = cmd.Wait()
}

func (h *handovers) note(g gap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.gaps, g) {
		h.gaps = append(h.gaps, g)
	}
}

// during tells that etcd had no leader when a write reached it that was sent at a time.
func (h *handovers) during(sent time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.gaps {
		if sent.After(g.from.Add(-reachesEtcd)) && !sent.After(g.to) {
			return true
		}
	}
	return false
}

func (h *handovers) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, g := range h.gaps {
		all = append(all, fmt.Sprintf("for %s from %s", g.to.Sub(g.from).Round(time.Millisecond), g.from.UTC().Format("15:04:05.000")))
	}
	return "members had no leader " + strings.Join(all, ", ")
}
