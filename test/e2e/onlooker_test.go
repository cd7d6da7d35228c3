//go:build e2e && fleet

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// seenPackage is what anybody sees of a Package.
type seenPackage struct {
	Metadata struct {
		Namespace  string `json:"namespace"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Config json.RawMessage `json:"config"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type               string `json:"type"`
			Status             string `json:"status"`
			ObservedGeneration int64  `json:"observedGeneration"`
		} `json:"conditions"`
	} `json:"status"`
}

// look is whether the Package is available, and whether what it says is about its present generation.
func (p seenPackage) look() (up, heard bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == "Available" {
			return c.Status == "True", c.ObservedGeneration == p.Metadata.Generation
		}
	}
	return false, false
}

// onlook watches the Packages of a fleet with kubectl until the test ends. It fails the test when one that is up is changed while as many others as may
// be are down, or were changed and not heard of since. Of the rollout it knows nothing.
func onlook(t *testing.T, name string, budget int) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(root(t), "bin", "kubectl"), "--kubeconfig", management().kubeconfig, "get", "packages", "-A",
		"--field-selector", "metadata.name="+name, "-o", "json", "--watch")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		seen := map[string]seenPackage{}
		for stream := json.NewDecoder(out); ; {
			var p seenPackage
			if stream.Decode(&p) != nil {
				return // the watch ends with the test
			}
			ns := p.Metadata.Namespace
			before, known := seen[ns]
			if up, _ := before.look(); known && up && string(before.Spec.Config) != string(p.Spec.Config) {
				down := 0
				for other, o := range seen {
					if up, heard := o.look(); other != ns && (!up || !heard) {
						down++
					}
				}
				if down+1 > budget {
					t.Errorf("the Package in %s was up and was changed while %d others were down, of %d", ns, down, budget)
				}
			}
			seen[ns] = p
		}
	})
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
		done.Wait()
	})
}
