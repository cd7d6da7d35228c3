//go:build e2e && live

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// highly is a highly available hosted cluster with a worker.
	highly          = "highly"
	highlyNamespace = "clusters-highly"
	// tunnelWatch is how long the tunnel is used after one of its servers was killed.
	tunnelWatch = 30 * time.Second
	// tunnelSilence is how long nothing may get through: a new server, and its agents again.
	tunnelSilence = 15 * time.Second
)

// TestLiveTunnel makes a highly available cluster beside the demo cluster, kills servers of its tunnel under the eyes of somebody who uses it,
// and removes it.
func TestLiveTunnel(t *testing.T) {
	release := management().run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")
	t.Cleanup(func() {
		run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", highly, kubeconfigFlag())
	})
	run(t, 20*time.Minute, "hypershift", "create", "cluster", "local", "--name", highly, "--release-image", release,
		"--control-plane-availability-policy", "HighlyAvailable", "--node-pool-replicas", "1", kubeconfigFlag(), "--wait", "--timeout", "18m",
		// Beside the demo cluster there is no room for it on two processors with what etcd asks for as a rule.
		"--annotations", "resource-request-override.hypershift.openshift.io/etcd.etcd=cpu=50m")
	k := hostedKubectl(t, highly)
	k.run(t, "apply", "-f", filepath.Join(root(t), "docs/examples/webapp.yaml"))
	eventually(t, appStart, "exec and logs", func() error { return throughTunnel(t, k) })

	servers := tunnelServers(t)
	if len(servers) != 3 {
		t.Fatalf("%d servers of the tunnel run, want 3", len(servers))
	}
	t.Run("When the process of a server is killed exec and logs should go on", func(t *testing.T) {
		if err := syscall.Kill(servers[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		tunnelGoesOn(t, k)
	})
	t.Run("When an API server goes with its server exec and logs should go on", func(t *testing.T) {
		pod := strings.Fields(management().run(t, "get", "pods", "-n", highlyNamespace, "-l", "app=kube-apiserver", "-o", "jsonpath={.items[*].metadata.name}"))[0]
		management().run(t, "delete", "pod", "-n", highlyNamespace, pod, "--grace-period=0", "--force", "--wait=false")
		tunnelGoesOn(t, k)
	})
	t.Run("When all servers are back each should have the agent", func(t *testing.T) {
		eventually(t, 5*time.Minute, "three servers", func() error {
			if n := len(tunnelServers(t)); n != 3 {
				return fmt.Errorf("%d run", n)
			}
			for range 12 { // enough to meet each
				if err := throughTunnel(t, k); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// throughTunnel asks for what only a kubelet can answer.
func throughTunnel(t testing.TB, k kubectl) error {
	t.Helper()
	if out, err := k.try(t, "exec", "deployment/webapp", "--", "/webapp", "get", "http://127.0.0.1:8080/"); err != nil || !strings.HasPrefix(out, "Hello") {
		return fmt.Errorf("exec: %w: %s", err, out)
	}
	if out, err := k.try(t, "logs", "deployment/webapp", "--tail=1"); err != nil || strings.TrimSpace(out) == "" {
		return fmt.Errorf("logs: %w: %s", err, out)
	}
	return nil
}

// tunnelGoesOn uses the tunnel for a time and measures how long it didn't work.
func tunnelGoesOn(t *testing.T, k kubectl) {
	var longest time.Duration
	worked, failed, last := 0, 0, time.Now()
	for end := time.Now().Add(tunnelWatch); time.Now().Before(end); {
		err := throughTunnel(t, k)
		if err != nil {
			failed++
			t.Logf("%s after the last success: %v", time.Since(last).Round(100*time.Millisecond), err)
			continue
		}
		worked++
		longest, last = max(longest, time.Since(last)), time.Now()
	}
	longest = max(longest, time.Since(last))
	t.Logf("%d times exec and logs worked, %d times not; the longest time without an answer was %s", worked, failed, longest.Round(100*time.Millisecond))
	if longest > tunnelSilence || worked == 0 {
		t.Errorf("nothing got through for %s, want at most %s", longest, tunnelSilence)
	}
}

// tunnelServers are the processes of the servers in the cluster's pods.
func tunnelServers(t testing.TB) []int {
	t.Helper()
	uids := strings.Fields(management().run(t, "get", "pods", "-n", highlyNamespace, "-l", "app=kube-apiserver", "-o", "jsonpath={.items[*].metadata.uid}"))
	var found []int
	for _, file := range list("/proc/[0-9]*/cmdline") {
		dir := filepath.Dir(file)
		line, err := os.ReadFile(file)
		groups, also := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil || also != nil || !strings.HasPrefix(string(line), "/usr/bin/proxy-server\x00") {
			continue
		}
		for _, uid := range uids {
			if strings.Contains(string(groups), "/pod"+uid+"/") {
				if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
					found = append(found, pid)
				}
			}
		}
	}
	return found
}
