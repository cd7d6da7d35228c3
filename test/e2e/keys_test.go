//go:build e2e && live

package e2e

import (
	"errors"
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
	// pluginTime is for API servers to learn a key and use it, and for all Secrets to be written again.
	pluginTime = 15 * time.Minute
	// saidTime is for kube-apiserver to notice that a plugin is away, and for that to be told.
	saidTime = 5 * time.Minute
)

// TestLiveKeys gives the keys of a demo cluster that runs already to a plugin, has the plugin not answer for a while, kills it, and takes the keys back.
func TestLiveKeys(t *testing.T) {
	m := management()
	awaitWorkers(t, "demo", 2)
	k := hostedKubectl(t, "demo")
	k.run(t, "create", "secret", "generic", "sealed", "--from-literal=a=b")
	t.Cleanup(func() { _, _ = k.try(t, "delete", "secret", "sealed", "sealed-too", "--ignore-not-found") })
	plugin := func(value string) {
		t.Helper()
		before := demoStatus(t, "{.status.secretEncryption.activeKey}")
		start := time.Now()
		m.run(t, "annotate", "hostedcluster", "-n", "clusters", "demo", "--overwrite", "hypershift.openshift.io/secret-encryption-plugin"+value)
		eventually(t, pluginTime, "everything to be encrypted with the other key", func() error {
			key, said := demoStatus(t, "{.status.secretEncryption.activeKey}"), demoCondition(t, "EtcdDataEncryptionUpToDate", "status")
			if key == before || said != "True" {
				return fmt.Errorf("the active key is %s, EtcdDataEncryptionUpToDate is %s: %s", key, said, demoCondition(t, "EtcdDataEncryptionUpToDate", "message"))
			}
			return nil
		})
		t.Logf("secret-encryption-plugin%s took %s", value, time.Since(start).Round(time.Second))
		reads(t, k, "after the change of the key")
	}
	plugin("=local-kms")
	if said := demoCondition(t, "SecretEncryptionKeysAvailable", "status"); said == "False" {
		t.Errorf("SecretEncryptionKeysAvailable is False: %s", demoCondition(t, "SecretEncryptionKeysAvailable", "message"))
	}

	// A service of keys that hangs is the worst of those that are away: nothing ends, so nobody is started anew.
	var pids []int
	eventually(t, pluginTime, "one API server, with one plugin", func() error {
		// The server that did without the other key ends some time after everything has been written again.
		rolled, err := m.try(t, "get", "deployment", "-n", demoNamespace, "kube-apiserver", "-o", "jsonpath={.metadata.generation}={.status.observedGeneration} {.status.updatedReplicas}/{.status.readyReplicas}/{.status.replicas}")
		var generation, observed int
		if _, scanned := fmt.Sscanf(rolled, "%d=%d 1/1/1", &generation, &observed); err != nil || scanned != nil || generation != observed {
			return errors.Join(fmt.Errorf("kube-apiserver is rolling out: %s", rolled), err)
		}
		if pids = plugins(t); len(pids) != 1 {
			return fmt.Errorf("plugins are the processes %v", pids)
		}
		return nil
	})
	signal(t, pids[0], syscall.SIGSTOP)
	away := time.Now()
	t.Cleanup(func() { _ = syscall.Kill(pids[0], syscall.SIGCONT) }) // it may have ended
	eventually(t, saidTime, "word of the key that can't be had", func() error {
		reads(t, k, "while the plugin is away")
		if said := demoCondition(t, "SecretEncryptionKeysAvailable", "status"); said != "False" {
			return fmt.Errorf("SecretEncryptionKeysAvailable is %s", said)
		}
		return nil
	})
	t.Logf("told after %s: %s", time.Since(away).Round(time.Second), demoCondition(t, "SecretEncryptionKeysAvailable", "message"))
	// The server uses a seed for three minutes beyond the last good word of the plugin, and encrypts nothing after that.
	eventually(t, saidTime, "a write that is refused", func() error {
		reads(t, k, "while the plugin is away")
		k.run(t, "create", "configmap", "open", "--from-literal=a=b")
		k.run(t, "delete", "configmap", "open")
		out, err := k.try(t, "create", "secret", "generic", "sealed-too", "--from-literal=a=b")
		if err != nil {
			t.Logf("refused after %s: %s", time.Since(away).Round(time.Second), strings.TrimSpace(out))
			return nil
		}
		_, err = k.try(t, "delete", "secret", "sealed-too")
		return errors.Join(errors.New("a Secret could be written"), err)
	})
	reads(t, k, "when writes are refused")
	signal(t, pids[0], syscall.SIGCONT)
	back := time.Now()
	known(t, k, back)

	// One that ends is started again by the kubelet.
	signal(t, pids[0], syscall.SIGKILL)
	killed := time.Now()
	eventually(t, saidTime, "a new plugin", func() error {
		reads(t, k, "after the plugin was killed")
		if now := plugins(t); len(now) != 1 || now[0] == pids[0] {
			return fmt.Errorf("plugins are the processes %v, the one that was killed was %d", now, pids[0])
		}
		return nil
	})
	known(t, k, killed)
	plugin("-")
	eventually(t, pluginTime, "no plugin", func() error {
		if left := plugins(t); len(left) > 0 {
			return fmt.Errorf("plugins are left: %v", left)
		}
		return nil
	})
}

// known waits until Secrets can be written again, and the condition says so.
func known(t *testing.T, k kubectl, since time.Time) {
	t.Helper()
	eventually(t, saidTime, "Secrets that can be written", func() error {
		out, err := k.try(t, "create", "secret", "generic", "sealed-too", "--from-literal=a=b")
		if err != nil {
			return errors.Join(err, errors.New(out))
		}
		_, err = k.try(t, "delete", "secret", "sealed-too")
		return err
	})
	eventually(t, saidTime, "word that the key can be had", func() error {
		if said := demoCondition(t, "SecretEncryptionKeysAvailable", "status"); said != "True" {
			return fmt.Errorf("SecretEncryptionKeysAvailable is %s", said)
		}
		return nil
	})
	t.Logf("the key is there again after %s", time.Since(since).Round(time.Second))
}

// reads has the API server read a Secret.
func reads(t *testing.T, k kubectl, when string) {
	t.Helper()
	if got, err := k.try(t, "get", "secret", "sealed", "-o", "jsonpath={.data.a}"); err != nil || got != "Yg==" {
		t.Fatalf("a Secret can't be read %s: %q, %v", when, got, err)
	}
}

func demoStatus(t *testing.T, path string) string {
	t.Helper()
	return management().run(t, "get", "hostedcontrolplane", "-n", demoNamespace, "demo", "-o", "jsonpath="+path)
}

// demoCondition is a field of a condition of the demo cluster.
func demoCondition(t *testing.T, kind, field string) string {
	t.Helper()
	return management().run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)].%s}`, kind, field))
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("sending %s to %d: %v", s, pid, err)
	}
}

// plugins are the processes that hold keys of the demo cluster.
func plugins(t *testing.T) []int {
	t.Helper()
	uids := strings.Fields(management().run(t, "get", "pods", "-n", demoNamespace, "-l", "app=kube-apiserver", "-o", "jsonpath={.items[*].metadata.uid}"))
	var found []int
	for _, file := range list("/proc/[0-9]*/cmdline") {
		dir := filepath.Dir(file)
		line, err := os.ReadFile(file)
		groups, also := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil || also != nil || !strings.Contains(string(line), "\x00kms-plugin\x00") {
			continue
		}
		for _, uid := range uids {
			if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && strings.Contains(string(groups), "/pod"+uid+"/") {
				found = append(found, pid)
			}
		}
	}
	return found
}
