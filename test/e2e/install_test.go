//go:build e2e && install

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/version"
)

// beforeVariable names a folder with the distribution and the programs of the version before, which hack/before.sh makes; without it nothing is upgraded.
const beforeVariable = "INSTALL_BEFORE"

// madeVariable names the distribution of this checkout that is installed; without it that is the folder dist.
const madeVariable = "INSTALL_MADE"

// distribution is the folder of it.
func distribution(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv(madeVariable); folder != "" {
		return folder
	}
	return filepath.Join(root(t), "dist")
}

// first is the hosted cluster of the page.
const first = "first"

// block is a fenced block of a page that is marked run, and the heading that it stands under.
type block struct{ heading, commands string }

// blocksToRun are the blocks of a page, in their order.
func blocksToRun(page string) []block {
	var blocks []block
	var inside *strings.Builder
	heading := ""
	for line := range strings.Lines(page) {
		switch {
		case inside == nil && strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(strings.TrimPrefix(line, "## "))
		case inside == nil && strings.HasPrefix(line, "```sh run"):
			inside = &strings.Builder{}
		case inside != nil && strings.HasPrefix(line, "```"):
			blocks, inside = append(blocks, block{heading, inside.String()}), nil
		case inside != nil:
			inside.WriteString(line)
		}
	}
	return blocks
}

// TestInstall follows docs/install.md on the demo cluster of "hypershift local up --state-dir /tmp/hcp-e2e" as the management cluster, with the images
// of a distribution and a registry that wants a password: first with a node of its own and an upgrade, then beside a Cluster API of somebody else. It leaves
// the demo cluster as it was.
func TestInstall(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "install.md"))
	g.Expect(err).NotTo(HaveOccurred())
	blocks := blocksToRun(string(page))
	var headings []string
	for _, b := range blocks {
		headings = append(headings, b.heading)
	}
	g.Expect(headings).To(Equal([]string{"1. Images", "2. The operator", "3. A hosted cluster", "Upgrade", "Remove it"}))
	if _, err := os.Stat(filepath.Join(distribution(t), "images", "index.json")); err != nil {
		t.Fatalf("no images in %s: run make dist DIST_PARTS=images first, as make e2e-install does", distribution(t))
	}
	s := newSite(t)
	before := s.objects()

	t.Run("When the page is followed it should do what it says", func(t *testing.T) {
		r := newReader(t, s)
		r.use(os.Getenv(beforeVariable))
		r.follow(blocks, map[string]func(){
			"2. The operator":     r.losesLeaders,
			"3. A hosted cluster": func() { r.looksAtSecurity(); r.joinsNode() },
			"Upgrade":             func() { r.nodeIsReady(); r.isUpgraded(); r.backAndForth(blocks[3]) },
		})
		s.nothingLeft(before)
	})
	if t.Failed() {
		return
	}
	t.Run("When Cluster API of somebody else is there it should not be touched", func(t *testing.T) {
		theirs := installTheirs(t)
		r := newReader(t, s)
		r.use("")
		r.follow(blocks, map[string]func(){
			"2. The operator":     theirs.works,
			"3. A hosted cluster": theirs.works,
			"Remove it":           theirs.works,
		})
		theirs.untouched()
		theirs.remove()
		s.nothingLeft(before)
	})
}

// reader is somebody at a terminal, in a folder of their own.
type reader struct {
	*testing.T
	site *site
	dir  string
	env  []string
}

func newReader(t *testing.T, s *site) *reader {
	t.Helper()
	g := NewWithT(t)
	r := &reader{T: t, site: s, dir: t.TempDir()}
	g.Expect(os.WriteFile(filepath.Join(r.dir, "pull-secret.json"), s.credentials(), 0o600)).To(Succeed())
	g.Expect(os.Mkdir(filepath.Join(r.dir, ".docker"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(r.dir, ".docker", "config.json"), s.credentials(), 0o600)).To(Succeed()) // docker login
	return r
}

// use makes a distribution the reader's own; empty: that of this checkout.
func (r *reader) use(folder string) {
	r.Helper()
	g := NewWithT(r.T)
	semver := version.Semver()
	dist, programs := filepath.Join(folder, "dist"), filepath.Join(folder, "bin")
	if folder == "" {
		dist, programs = distribution(r.T), r.unpack(distribution(r.T))
	} else {
		raw, err := os.ReadFile(filepath.Join(folder, "internal", "version", "VERSION"))
		g.Expect(err).NotTo(HaveOccurred())
		semver = strings.TrimSpace(string(raw))
	}
	_ = os.Remove(filepath.Join(r.dir, "dist")) // that of before
	g.Expect(os.Symlink(dist, filepath.Join(r.dir, "dist"))).To(Succeed())
	kubeconfig, err := filepath.Abs(hosted().kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	r.env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+programs+":"+filepath.Join(root(r.T), "bin")+":"+os.Getenv("PATH"), "HOME="+r.dir,
		"REGISTRY="+r.site.registry+"/team", "VERSION="+semver)
	r.Logf("the reader has version %s: programs of %s, images of %s", semver, programs, dist)
}

// unpack unpacks the archive for this machine, and returns the folder of its programs; of a distribution without archives they are those of make build.
func (r *reader) unpack(dist string) string {
	r.Helper()
	g := NewWithT(r.T)
	archive := filepath.Join(dist, "hypershift-"+version.Semver()+"-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz")
	if _, err := os.Stat(archive); err != nil {
		return filepath.Join(root(r.T), "bin")
	}
	programs := filepath.Join(r.dir, "programs")
	g.Expect(os.MkdirAll(programs, 0o755)).To(Succeed())
	out, err := exec.CommandContext(r.Context(), "tar", "-xzf", archive, "-C", programs).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	return programs
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

// follow runs blocks one after the other, and what is to be looked at behind each. Before the upgrade the reader gets the version of this checkout.
func (r *reader) follow(blocks []block, behind map[string]func()) {
	r.Helper()
	for _, b := range blocks {
		pods := ""
		if b.heading == "Upgrade" {
			r.use("")
			pods = r.controlPlane()
		}
		begin := time.Now()
		out, err := r.run(b.commands)
		r.Logf("%s, %s after %s:\n%s", b.heading, b.commands, time.Since(begin).Round(time.Second), out)
		if err != nil {
			state, _ := r.run("kubectl get hostedclusters -A; hypershift why hostedcluster/first; kubectl get pods -A -o wide; kubectl get events -A --sort-by=.lastTimestamp | tail -40; kubectl logs -n hypershift deployment/operator --tail=40")
			r.Fatalf("block %q: %v; the rest of the page needs it:\n%s", b.heading, err, state)
		}
		if b.heading == "Upgrade" {
			if now := r.controlPlane(); now != pods {
				r.Errorf("the upgrade of the operator changed pods of the hosted cluster:\n%s\nthey were\n%s", now, pods)
			}
		}
		if look := behind[b.heading]; look != nil {
			look()
		}
	}
}

// controlPlane names the pods of the hosted cluster that only its release decides on.
func (r *reader) controlPlane() string {
	r.Helper()
	return hosted().run(r.T, "get", "pods", "-n", "clusters-"+first, "-l", "hypershift.openshift.io/control-plane-component in (etcd,kube-apiserver,kube-controller-manager,kube-scheduler)",
		"-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid}{"\n"}{end}`)
}

// looksAtSecurity expects that control planes run where only the strictest of Pod Security's levels is let in.
func (r *reader) looksAtSecurity() {
	r.Helper()
	for _, namespace := range []string{"hypershift", "clusters-" + first} {
		if level := hosted().run(r.T, "get", "namespace", namespace, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`); level != "restricted" {
			r.Errorf("namespace %s enforces %q of Pod Security, want restricted", namespace, level)
		}
	}
}

// joinsNode brings a machine to the hosted cluster, as docs/bring-your-own-nodes.md says.
func (r *reader) joinsNode() {
	r.Helper()
	g := NewWithT(r.T)
	k := kubectl{filepath.Join(r.dir, "first.kubeconfig")}
	w := bootMachine(r.T)
	on := func(line string) { w.run(r.T, "exec", "-n", "named", "mine", "--", "bash", "-c", line) }
	on(r.site.trusted())
	on("mkdir -p /var/lib/kubelet && cat > /var/lib/kubelet/config.json <<'END'\n" + string(r.site.credentials()) + "\nEND")
	server := k.run(r.T, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	g.Expect(server).To(HavePrefix("https://"))
	joinByHand(r.T, k, w, server)
	k.run(r.T, append([]string{"certificate", "approve"}, awaitRequests(r.T, k, "kube-apiserver-client-kubelet")...)...)
	k.run(r.T, append([]string{"certificate", "approve"}, awaitRequests(r.T, k, "kubelet-serving")...)...)
	r.nodeIsReady()
}

// nodeIsReady expects a Ready node that runs pods, whose images the registry gives for a password only.
func (r *reader) nodeIsReady() {
	r.Helper()
	k := kubectl{filepath.Join(r.dir, "first.kubeconfig")}
	eventually(r.T, 5*time.Minute, "a Ready node", func() error {
		out, err := k.try(r.T, "get", "nodes", "-o", "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}")
		if err != nil || strings.TrimSpace(out) != "True" {
			return errors.Join(fmt.Errorf("Ready is %q", out), err)
		}
		return nil
	})
	eventually(r.T, 5*time.Minute, "DNS in the hosted cluster", func() error {
		out, err := k.try(r.T, "get", "deployment", "-n", "kube-system", "coredns", "-o", "jsonpath={.status.availableReplicas}")
		if err != nil || out == "" || out == "0" {
			pods, _ := k.try(r.T, "get", "pods", "-A", "-o", "wide")
			return errors.Join(fmt.Errorf("%q replicas are available\n%s", out, pods), err)
		}
		return nil
	})
}

// isUpgraded expects that the operator of this checkout leads.
func (r *reader) isUpgraded() {
	r.Helper()
	r.isAt(version.Semver())
}

// isAt expects that the operator of a version leads, which it does once the one before has given its lease back.
func (r *reader) isAt(semver string) {
	r.Helper()
	eventually(r.T, 2*time.Minute, "the operator of "+semver, func() error {
		out, err := r.run("hypershift version")
		if err != nil || !strings.Contains(out, "Server Version: v"+semver+",") {
			return errors.Join(errors.New(out), err)
		}
		return nil
	})
}
