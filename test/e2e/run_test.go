//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stateDir is fixed, so that the next run finds and removes what a killed one left behind.
const stateDir = "/tmp/hcp-e2e"

// root is the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// run executes a command of bin/ and fails the test with its output when it fails.
func run(t testing.TB, timeout time.Duration, name string, args ...string) string {
	t.Helper()
	out, err := try(t, timeout, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// try executes a command of bin/ and returns what it printed.
func try(t testing.TB, timeout time.Duration, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(root(t), "bin", name), args...)
	cmd.Dir = root(t)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A detached child must not keep Wait from returning through an inherited pipe.
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no end after %s: %w", timeout, ctx.Err())
	}
	return out.String(), err
}

// kubectl runs kubectl against one of the kubeconfigs in the state folder, with input on stdin when it isn't empty.
type kubectl struct{ kubeconfig string }

func management() kubectl { return kubectl{filepath.Join(stateDir, "kubeconfig")} }
func hosted() kubectl     { return kubectl{filepath.Join(stateDir, "demo.kubeconfig")} }

// kubeconfigFlag lets our own commands work on the management cluster.
func kubeconfigFlag() string { return "--kubeconfig=" + management().kubeconfig }

func (k kubectl) try(t testing.TB, args ...string) (string, error) {
	t.Helper()
	return try(t, time.Minute, "kubectl", append([]string{"--kubeconfig", k.kubeconfig, "--request-timeout=20s"}, args...)...)
}

func (k kubectl) run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := k.try(t, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// applyYAML applies a manifest.
func (k kubectl) applyYAML(t testing.TB, manifest string) {
	t.Helper()
	// kubectl splits names of files at commas, and the folder of a test has the test's name.
	dir, err := os.MkdirTemp("", "manifest")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "kubectl apply", func() error {
		out, err := k.try(t, "apply", "-f", file)
		if err == nil {
			return nil
		}
		if !strings.Contains(out, "no matches for kind") { // the API server serves a kind a moment after its definition is established
			t.Fatalf("kubectl apply: %v\n%s", err, out)
		}
		return errors.New(out)
	})
}

// eventually polls until check returns nil and fails the test with its last error after timeout.
func eventually(t testing.TB, timeout time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s: %v", what, timeout, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// step is a part of a test whose parts come in order, because they share the one cluster that a machine can run.
type step struct {
	name string
	run  func(t *testing.T)
}

// findings are what a step found, for the end of the log.
var findings []string

// inOrder runs steps until the first one that fails.
func inOrder(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		if !t.Run(s.name, s.run) {
			logState(t)
			for _, f := range findings { // once more, as the state of the clusters is long
				t.Log("What failed: " + f)
			}
			t.FailNow()
		}
	}
}

// noCluster takes down what a killed run may have left behind, now and at the end of the test.
func noCluster(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the end-to-end test starts a node; run it as root")
	}
	down := func() { run(t, 3*time.Minute, "hypershift", "local", "down", "--state-dir", stateDir) }
	down()
	t.Cleanup(down)
}
