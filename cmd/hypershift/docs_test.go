package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/image/bundle"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/testenv"
)

const (
	pages = "../../docs"
	// followed is the page that make e2e-install follows, on a cluster with nodes.
	followed = "install.md"
	// fewest is how many pages have blocks that are run; fewer means that a mark was lost.
	fewest = 10
)

// TestDocs runs the blocks of the handbook that are marked run, as somebody does who reads a page from its beginning: against a real API server
// with a hosted cluster that nobody works on, and a registry.
func TestDocs(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(pages, "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string][]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		if blocks := blocksToRun(string(raw)); len(blocks) > 0 && filepath.Base(file) != followed {
			found[filepath.Base(file)] = blocks
		}
	}
	g.Expect(len(found)).To(BeNumerically(">=", fewest))
	d := newDesk(t)
	for page, blocks := range found {
		t.Run("When the commands of "+page+" are run they should do what the page says", func(t *testing.T) {
			dir := d.folder(t)
			for i, block := range blocks {
				if out, err := d.run(t, dir, block); err != nil {
					t.Fatalf("block %d: %v\n%s\n%s", i+1, err, block, out)
				}
			}
		})
	}
}

// blocksToRun are the fenced blocks of a page that are marked run, in their order.
func blocksToRun(page string) (blocks []string) {
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

// desk is where the reader sits: programs, a kubeconfig and a registry.
type desk struct{ bin, kubeconfig, registry string }

func newDesk(t *testing.T) desk {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	dir := t.TempDir()
	d := desk{bin: filepath.Join(dir, "bin"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	g.Expect(os.Mkdir(d.bin, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(d.kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())
	for _, name := range []string{"hypershift", "kubectl-package"} {
		script := fmt.Sprintf("#!/bin/bash\nexport %s=\"$(printf '%%s\\n' %s \"$@\")\"\nexec %s\n", asProgram, name, os.Args[0])
		g.Expect(os.WriteFile(filepath.Join(d.bin, name), []byte(script), 0o755)).To(Succeed())
	}
	kubectl, err := filepath.Abs("../../bin/kubectl")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Symlink(kubectl, filepath.Join(d.bin, "kubectl"))).To(Succeed())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	d.registry = strings.TrimPrefix(server.URL, "http://")
	fillCluster(t, env.Client(t, connect.Scheme()))
	return d
}

// fillCluster brings what readers have when they open a page: a node, and hosted cluster demo.
func fillCluster(t *testing.T, c client.Client) {
	t.Helper()
	g := NewWithT(t)
	create := func(obj client.Object) {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
		if _, namespace := obj.(*corev1.Namespace); !namespace { // which nothing here can empty
			t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), obj) })
		}
	}
	for _, name := range []string{"clusters", "clusters-demo", "hypershift"} {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("250")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	create(node)
	node.Status = corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	g.Expect(c.Status().Update(t.Context(), node)).To(Succeed())
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo-pull-secret", Namespace: "clusters"}, Data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{}}`)}})
	hc := testenv.HostedCluster("clusters", "demo")
	hc.Spec.PullSecret.Name = "demo-pull-secret"
	create(hc)
	// It was available for a moment, and isn't any more.
	book := &journal.Book{Client: c, Live: c, Clock: clock.RealClock{}}
	for _, available := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		for kind, status := range map[string]metav1.ConditionStatus{hyperv1.HostedClusterAvailable: available, hyperv1.EtcdAvailable: available, hyperv1.ReconciliationActive: metav1.ConditionTrue} {
			meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: hyperv1.AsExpectedReason, ObservedGeneration: hc.Generation})
		}
		g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
		g.Expect(book.Record(t.Context(), hc, hc.Status.Conditions)).To(Succeed())
	}
}

// folder is one with what pages take for granted: a distribution, a pull secret, and inputs to render.
func (d desk) folder(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "pull-secret.json"), []byte(`{"auths":{}}`), 0o600)).To(Succeed())
	inputs := filepath.Join("..", "..", "internal", "cli", "render", "testdata", "input")
	for name, from := range map[string]string{"hcp.yaml": "local-hosted-cluster.yaml", "release.json": "release.json"} {
		data, err := os.ReadFile(filepath.Join(inputs, from))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(dir, name), data, 0o600)).To(Succeed())
	}
	w, err := bundle.NewWriter(filepath.Join(dir, "dist", "images"))
	g.Expect(err).NotTo(HaveOccurred())
	add := func(e bundle.Entry, img v1.Image, err error) v1.Hash {
		g.Expect(err).NotTo(HaveOccurred())
		one, err := w.Image(img)
		g.Expect(err).NotTo(HaveOccurred())
		idx, err := w.Index(one)
		g.Expect(err).NotTo(HaveOccurred())
		w.Add(e, idx)
		return idx.Digest
	}
	layer, err := image.NewLayer(image.File{Path: "/program", Data: []byte("x")})
	g.Expect(err).NotTo(HaveOccurred())
	img, err := image.New(image.Config{}, layer)
	operators := add(bundle.Entry{Repository: "hypershift/hypershift", Tag: "1.0.0", Kind: bundle.Operator}, img, err)
	img, err = image.Release("1.36.3", map[string]string{"controlplane-operator": bundle.Placeholder + "/hypershift/hypershift@" + operators.String()})
	add(bundle.Entry{Repository: "hypershift/release", Tag: "1.36.3", Kind: bundle.Release, Release: "1.36.3", Needs: []v1.Hash{operators}}, img, err)
	g.Expect(w.Close()).To(Succeed())
	index, err := os.ReadFile(filepath.Join(dir, "dist", "images", "index.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "dist", "SHA256SUMS"), fmt.Appendf(nil, "%x  images/index.json\n", sha256.Sum256(index)), 0o600)).To(Succeed())
	return dir
}

// run has a shell run commands in a folder, which ends at the first that fails.
func (d desk) run(t *testing.T, dir, commands string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.kubeconfig, "REGISTRY="+d.registry+"/"+filepath.Base(dir), "VERSION=1.0.0", "HOME="+dir, "PATH="+d.bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}
