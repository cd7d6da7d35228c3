//go:build e2e && install

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"

	"hcp.internal/platform/internal/local/builds"
)

// theirs is a Cluster API of somebody else in the management cluster: stock definitions, its stock manager, and a Cluster.
type theirs struct {
	*testing.T
	definitions, cluster string // as they were
	changes              int
	manager              func() // ends it
}

const theirLabel = "example.com/owner=theirs"

// installTheirs brings it.
func installTheirs(t *testing.T) *theirs {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(root(t), "config", "capi", "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		hosted().run(t, "create", "-f", file)
		hosted().run(t, "label", "-f", file, theirLabel) // ours have the labels of Cluster API, too
	}
	o := &theirs{T: t}
	eventually(t, time.Minute, "their Cluster", func() error {
		hosted().run(t, "wait", "--for=condition=Established", "crd", "-l", theirLabel, "--timeout=15s")
		dir := t.TempDir()
		file := filepath.Join(dir, "cluster.yaml")
		if err := os.WriteFile(file, []byte(theirCluster), 0o600); err != nil {
			return err
		}
		_, err := hosted().try(t, "apply", "-f", file)
		return err
	})
	o.startManager()
	o.definitions, o.cluster = o.state()
	return o
}

const theirCluster = `
apiVersion: v1
kind: Namespace
metadata: {name: theirs}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: theirs, namespace: theirs}
spec:
  paused: true
  clusterNetwork: {services: {cidrBlocks: [10.0.0.0/16]}}
`

// startManager runs their manager, unmodified, as a process of this machine: the definitions that it finds are the ones above.
func (o *theirs) startManager() {
	o.Helper()
	g := NewWithT(o.T)
	dir := o.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)).To(Succeed())
	log, err := os.Create(filepath.Join(dir, "log"))
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(filepath.Join(root(o.T), builds.ClusterAPIManager), "--kubeconfig="+hosted().kubeconfig, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
		"--feature-gates=MachinePool=false,ClusterTopology=false", "--webhook-cert-dir="+dir, "--webhook-port=19443", "--health-addr=127.0.0.1:19440", "--diagnostics-address=127.0.0.1:19441",
		"--insecure-diagnostics", "--v=2")
	cmd.Stdout, cmd.Stderr = log, log
	g.Expect(cmd.Start()).To(Succeed())
	o.manager = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	o.Cleanup(func() {
		o.manager()
		if o.Failed() {
			said, _ := os.ReadFile(log.Name())
			o.Logf("their manager: …%s", said[max(0, len(said)-4000):])
		}
	})
	o.works()
}

// works expects that their manager follows a change of their Cluster.
func (o *theirs) works() {
	o.Helper()
	o.changes++
	hosted().run(o.T, "patch", "clusters.cluster.x-k8s.io", "-n", "theirs", "theirs", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"paused":%t}}`, o.changes%2 == 0))
	eventually(o.T, 2*time.Minute, "their manager", func() error {
		out, err := hosted().try(o.T, "get", "clusters.cluster.x-k8s.io", "-n", "theirs", "theirs", "-o",
			`jsonpath={.metadata.generation} {.status.conditions[?(@.type=="Paused")].observedGeneration} {.status.conditions[?(@.type=="Paused")].status}`)
		fields := strings.Fields(out)
		if err != nil || len(fields) != 3 || fields[0] != fields[1] {
			return errors.Join(fmt.Errorf("generation and what of it was observed: %q", out), err)
		}
		return nil
	})
}

// state are the definitions, and which Cluster it is.
func (o *theirs) state() (definitions, cluster string) {
	o.Helper()
	definitions = hosted().run(o.T, "get", "crds", "-l", theirLabel, "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.annotations}{"\n"}{end}`)
	return definitions, hosted().run(o.T, "get", "clusters.cluster.x-k8s.io", "-n", "theirs", "theirs", "-o", `jsonpath={.metadata.uid} {.metadata.finalizers}`)
}

// untouched expects that nobody else has changed anything.
func (o *theirs) untouched() {
	o.Helper()
	definitions, cluster := o.state()
	if definitions != o.definitions {
		o.Errorf("their definitions are\n%s\nthey were\n%s", definitions, o.definitions)
	}
	if cluster != o.cluster {
		o.Errorf("their Cluster is %s, and was %s", cluster, o.cluster)
	}
}

// remove takes all of it away.
func (o *theirs) remove() {
	o.Helper()
	// It has no infrastructure that could be deleted, and their manager would wait for it.
	o.manager()
	hosted().run(o.T, "delete", "clusters.cluster.x-k8s.io", "-n", "theirs", "theirs", "--wait=false")
	_, _ = hosted().try(o.T, "patch", "clusters.cluster.x-k8s.io", "-n", "theirs", "theirs", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`) // if it is still there
	hosted().run(o.T, "delete", "namespace", "theirs", "--wait=false")                                                                                 // nothing waits for it but the look at what is left
	hosted().run(o.T, "delete", "crds", "-l", theirLabel, "--wait=false")
}
