//go:build e2e && live

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// repairTime is for a machine to be found unhealthy, to be removed and to be replaced by one that is Ready, on a busy machine.
	repairTime = 8 * time.Minute
	// scaleTime is for a few more workers, and for a new manager to take the lease of one that was killed.
	scaleTime = 6 * time.Minute
)

// TestLiveFaults harms a demo cluster that runs already, from "hypershift local up --state-dir /tmp/hcp-e2e", and leaves it healthy.
func TestLiveFaults(t *testing.T) {
	t.Run("When the makers of machines are killed in the middle of a scale-up no machine should be too many or lost", makersKilled)
	t.Run("When a worker's disk is full it should be replaced within its times, and not beyond maxUnhealthy", diskFull)
}

// makersKilled kills Cluster API's manager and the provider once the first new machine is there.
func makersKilled(t *testing.T) {
	const before, after = 2, 5
	m := management()
	scale := func(n int) { m.run(t, "scale", "nodepool", "-n", "clusters", "demo", fmt.Sprintf("--replicas=%d", n)) }
	awaitWorkers(t, "demo", before)
	defer func() {
		scale(before)
		awaitWorkers(t, "demo", before)
	}()
	most := 0
	count := func() int {
		n := len(names(t, "machines", demoNamespace))
		most = max(most, n)
		return n
	}
	scale(after)
	eventually(t, time.Minute, "a third machine", func() error {
		if n := count(); n <= before {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	for _, component := range []string{"cluster-api", "capi-provider"} {
		m.run(t, "delete", "pod", "-n", demoNamespace, "-l", "hypershift.openshift.io/control-plane-component="+component, "--grace-period=0", "--force", "--wait=false")
	}
	killed := time.Now()
	eventually(t, scaleTime, "all workers", func() error {
		count()
		return workers(t, "demo", after)
	})
	t.Logf("%d workers were Ready %s after the kill", after, time.Since(killed).Round(time.Second))
	if most > after {
		t.Errorf("there were %d machines, %d were wanted", most, after)
	}
	// Every part of a machine belongs to one that is there. One that was made for a Machine that never came goes after two minutes.
	eventually(t, scaleTime, "no orphan", func() error {
		machines := names(t, "machines", demoNamespace)
		locals, pods := names(t, "localmachines", demoNamespace), names(t, "pods", demoNamespace, "-l", "infrastructure.cluster.x-k8s.io/local-machine")
		if !slices.Equal(locals, machines) || !slices.Equal(pods, machines) {
			return fmt.Errorf("localmachines are %v, pods %v, and machines %v", locals, pods, machines)
		}
		return nil
	})
}

// names lists objects, sorted.
func names(t testing.TB, kind, namespace string, more ...string) []string {
	t.Helper()
	out := management().run(t, append([]string{"get", kind, "-n", namespace, "-o", "jsonpath={.items[*].metadata.name}"}, more...)...)
	return slices.Sorted(slices.Values(strings.Fields(out)))
}

func awaitWorkers(t *testing.T, pool string, n int) {
	t.Helper()
	eventually(t, scaleTime, fmt.Sprintf("%d workers of %s", n, pool), func() error { return workers(t, pool, n) })
}

// workers returns an error unless a pool has exactly n machines and all are Ready nodes.
func workers(t testing.TB, pool string, n int) error {
	t.Helper()
	ready, err := hosted().try(t, "get", "nodes", "-l", "hypershift.openshift.io/nodePool="+pool, "-o", `jsonpath={range .items[?(@.status.conditions[-1].type=="Ready")]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
	if err != nil {
		return errors.Join(err, errors.New(ready))
	}
	nodes := strings.Fields(ready)
	if len(nodes) != n || slices.Contains(nodes, "False") || slices.Contains(nodes, "Unknown") {
		return fmt.Errorf("Ready of the nodes is %v, want %d times True", nodes, n)
	}
	return nil
}

// smallDisk gives machines a disk of their own for the kubelet: that of the management cluster's node, which they share, must not be filled.
const smallDisk = `
apiVersion: v1
kind: ConfigMap
metadata: {name: small-disk, namespace: clusters}
data:
  config: |
    apiVersion: machineconfiguration.openshift.io/v1
    kind: MachineConfig
    metadata: {name: 99-small-disk}
    spec:
      config:
        ignition: {version: 3.2.0}
        systemd:
          units:
          - name: small-disk.service
            enabled: true
            contents: |
              [Unit]
              Before=containerd.service kubelet-install.service kubelet.service
              [Service]
              Type=oneshot
              RemainAfterExit=yes
              ExecStart=/usr/bin/mount -t tmpfs -o size=64m tmpfs /var/lib/kubelet
              [Install]
              WantedBy=multi-user.target
    ---
    apiVersion: machineconfiguration.openshift.io/v1
    kind: KubeletConfig
    metadata: {name: small-disk}
    spec:
      kubeletConfig:
        evictionHard: {memory.available: 100Mi, nodefs.available: 10%%, imagefs.available: 1Gi}
---
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata:
  name: full
  namespace: clusters
  annotations:
    hypershift.openshift.io/machine-health-check-timeout: 30s
    hypershift.openshift.io/machine-health-check-max-unhealthy: "0"
spec:
  clusterName: demo
  replicas: 1
  release: {image: %q}
  platform: {type: Local}
  management: {upgradeType: Replace, autoRepair: true}
  config: [{name: small-disk}]
`

// diskFull fills the disk of a worker: nothing may be repaired as long as maxUnhealthy forbids it, and it is repaired afterwards.
func diskFull(t *testing.T) {
	m := management()
	t.Cleanup(func() {
		m.run(t, "delete", "nodepool", "-n", "clusters", "full", "--timeout=3m")
		m.run(t, "delete", "configmap", "-n", "clusters", "small-disk")
	})
	m.applyYAML(t, fmt.Sprintf(smallDisk, m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")))
	awaitWorkers(t, "full", 1)
	worker := poolMachines(t, "full")
	if len(worker) != 1 {
		t.Fatalf("machines are %v", worker)
	}
	healthCheck := func() (string, error) {
		return m.try(t, "get", "machinehealthcheck", "-n", demoNamespace, "full", "-o", "jsonpath={.status.expectedMachines} {.status.currentHealthy}")
	}
	eventually(t, 2*time.Minute, "the health check", func() error {
		if got, err := healthCheck(); err != nil || got != "1 1" {
			return fmt.Errorf("machines expected and healthy are %q, want 1 1 (%v)", got, err)
		}
		return nil
	})
	if out, err := m.try(t, "exec", "-n", demoNamespace, worker[0], "--", "/usr/bin/dd", "if=/dev/zero", "of=/var/lib/kubelet/full", "bs=1M"); err == nil || !strings.Contains(out, "No space left") {
		t.Fatalf("the disk isn't full: %v\n%s", err, out)
	}
	full := time.Now()
	eventually(t, repairTime, "an unhealthy machine that is left alone", func() error {
		got, err := m.try(t, "get", "nodepool", "-n", "clusters", "full", "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status} {.status.conditions[?(@.type=='Ready')].reason}")
		if err != nil || got != "False TooManyUnhealthy" {
			return errors.Join(fmt.Errorf("Ready of the NodePool is %q", got), err)
		}
		return nil
	})
	t.Logf("%s after its disk was full the machine was known to be unhealthy", time.Since(full).Round(time.Second))
	if now := poolMachines(t, "full"); !slices.Equal(now, worker) {
		t.Fatalf("beyond maxUnhealthy machines were replaced: %v are %v now", worker, now)
	}
	m.run(t, "annotate", "nodepool", "-n", "clusters", "full", "--overwrite", "hypershift.openshift.io/machine-health-check-max-unhealthy=1")
	allowed := time.Now()
	eventually(t, repairTime, "another machine", func() error {
		if now := poolMachines(t, "full"); len(now) != 1 || now[0] == worker[0] {
			return fmt.Errorf("machines are %v, one other than %v is wanted", now, worker)
		}
		return workers(t, "full", 1)
	})
	t.Logf("%s after it was allowed another machine was Ready", time.Since(allowed).Round(time.Second))
}

// poolMachines lists the machines of a pool, those that are going included.
func poolMachines(t testing.TB, pool string) []string {
	t.Helper()
	var found []string
	for _, name := range names(t, "machines", demoNamespace) {
		if strings.HasPrefix(name, pool+"-") {
			found = append(found, name)
		}
	}
	return found
}
