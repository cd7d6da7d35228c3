//go:build e2e && install

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/version"
)

// blocksToRun are the fenced blocks of a page that are marked run, in their order.
func blocksToRun(page string) []string {
	var blocks []string
	var block *strings.Builder
	for line := range strings.Lines(page) {
		switch {
		case block == nil && strings.HasPrefix(line, "```sh run"):
			block = &strings.Builder{}
		case block != nil && strings.HasPrefix(line, "```"):
			blocks, block = append(blocks, block.String()), nil
		case block != nil:
			block.WriteString(line)
		}
	}
	return blocks
}

// TestInstall follows docs/install.md on the demo cluster of "hypershift local up --state-dir /tmp/hcp-e2e" as the management cluster, with the images
// of dist/images. It leaves the demo cluster as it was.
func TestInstall(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "install.md"))
	g.Expect(err).NotTo(HaveOccurred())
	blocks := blocksToRun(string(page))
	g.Expect(len(blocks)).To(BeNumerically(">=", 4))
	if _, err := os.Stat(filepath.Join(root(t), "dist", "images", "index.json")); err != nil {
		t.Fatal("no dist/images: run make dist DIST_PARTS=images first, as make e2e-install does")
	}
	k := hosted()
	before := k.run(t, "get", "crds,namespaces,clusterroles,priorityclasses,validatingadmissionpolicies", "-o", "name")

	reader := newReader(t)
	for i, block := range blocks {
		t.Run(fmt.Sprintf("When block %d of the page is run it should do what the page says", i+1), func(t *testing.T) {
			begin := time.Now()
			out, err := reader.run(block)
			t.Logf("%s after %s:\n%s", block, time.Since(begin).Round(time.Second), out)
			if err != nil {
				t.Fatal(err)
			}
		})
		if t.Failed() {
			out, _ := reader.run("kubectl get hostedclusters -A; hypershift why first; kubectl get pods -A -o wide; kubectl get events -A --sort-by=.lastTimestamp | tail -40")
			t.Fatalf("the rest of the page needs this block:\n%s", out)
		}
	}
	t.Run("When the page has been followed to its end nothing should be left", func(t *testing.T) {
		eventually(t, 5*time.Minute, "what is left", func() error {
			now, err := k.try(t, "get", "crds,namespaces,clusterroles,priorityclasses,validatingadmissionpolicies", "-o", "name")
			if err != nil {
				return err
			}
			var left []string
			for name := range strings.SplitSeq(strings.TrimSpace(now), "\n") {
				// The namespace of the HostedCluster was the user's.
				if !strings.Contains(before+"\n", name+"\n") && name != "namespace/clusters" {
					left = append(left, name)
				}
			}
			if len(left) > 0 {
				return fmt.Errorf("%s", strings.Join(left, ", "))
			}
			return nil
		})
		_, _ = k.try(t, "delete", "namespace", "clusters", "--ignore-not-found", "--wait=false") // a courtesy to who looks at the cluster next
	})
}

// reader is somebody at a terminal, in a folder of their own.
type reader struct {
	t   *testing.T
	dir string
	env []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	g := NewWithT(t)
	r := &reader{t: t, dir: t.TempDir()}
	g.Expect(os.Symlink(filepath.Join(root(t), "dist"), filepath.Join(r.dir, "dist"))).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(r.dir, "pull-secret.json"), []byte(`{"auths":{}}`), 0o600)).To(Succeed())
	kubeconfig, err := filepath.Abs(hosted().kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	r.env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Join(root(t), "bin")+":"+os.Getenv("PATH"), "HOME="+r.dir,
		"REGISTRY="+components.RegistryHost+"/carried", "VERSION="+version.Semver())
	return r
}

// run has a shell run commands, which ends at the first that fails.
func (r *reader) run(commands string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.dir, r.env, 10*time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}
