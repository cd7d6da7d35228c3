//go:build e2e && live

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// authoritiesTime is for successors, their way to components and nodes, three minutes of waiting, and new certificates for all of the control plane.
	authoritiesTime = 20 * time.Minute
	// restartSilence is how long the one API server of the demo cluster may be away in each of its restarts.
	restartSilence = 90 * time.Second
	// sleepTime is for workers to be drained and a control plane to stop, and for both to come back.
	sleepTime = 10 * time.Minute
)

// TestLiveAuthorities replaces every authority of a demo cluster that runs already, from "hypershift local up --state-dir /tmp/hcp-e2e", under a client that
// counts failed requests: workers follow without being replaced.
func TestLiveAuthorities(t *testing.T) {
	m := management()
	awaitWorkers(t, "demo", 2)
	hosted := hostedKubectl(t, "demo")
	nodes := func() string {
		return hosted.run(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}`)
	}
	before := nodes()
	annotate := func(value string) {
		m.run(t, "annotate", "hostedcluster", "-n", "clusters", "demo", "--overwrite", "hypershift.openshift.io/certificate-validity"+value)
	}
	annotate("=30m") // so that successors sign after three minutes, not after an hour
	t.Cleanup(func() { annotate("-") })
	// A kubeconfig of before ends with the switch; this one is made again until both are trusted.
	run(t, time.Minute, "hypershift", "rotate", "authorities", "demo", kubeconfigFlag())
	eventually(t, authoritiesTime, "both authorities in the kubeconfig", func() error {
		if n := generations(t, demoNamespace, "root-ca"); n < 2 {
			return fmt.Errorf("root-ca has %d generations", n)
		}
		hosted = hostedKubectl(t, "demo")
		return nil
	})
	// The one API server takes up the new bundles by starting anew.
	eventually(t, authoritiesTime, "an API that answers", func() error {
		_, err := hosted.try(t, "get", "namespace", "default", "-o", "name")
		return err
	})
	calls := startCaller(t, filepath.Join(stateDir, "demo.kubeconfig"))
	said := ""
	eventually(t, authoritiesTime, "all authorities to be replaced", func() error {
		if told := m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", `jsonpath={.status.conditions[?(@.type=="NodesTrustAuthorities")].message}`); told != said {
			said = told
			t.Logf("NodesTrustAuthorities: %s", said)
		}
		return allReplaced(t, demoNamespace)
	})
	eventually(t, authoritiesTime, "kubelets that are reached and Ready nodes", func() error {
		if err := workers(t, "demo", 2); err != nil {
			return err
		}
		pods := hosted.run(t, "get", "pods", "-n", "kube-system", "-l", "app=node-trust", "-o", "name")
		for pod := range strings.FieldsSeq(pods) {
			if _, err := hosted.try(t, "logs", "-n", "kube-system", pod, "--tail=1"); err != nil { // the API server's certificate, shown to the kubelet
				return err
			}
		}
		return nil
	})
	if after := nodes(); after != before {
		t.Errorf("nodes were %s and are %s: none should be replaced", before, after)
	}
	calls.expectSilence(t, "replacement of all authorities", restartSilence)
}

// allReplaced says which authorities of a control plane are still to be replaced.
func allReplaced(t *testing.T, namespace string) error {
	t.Helper()
	var waiting []string
	for _, authority := range []string{"root-ca", "cluster-signer-ca", "kube-apiserver-to-kubelet-signer", "etcd-signer", "konnectivity-signer"} {
		if data := management().run(t, "get", "secret", "-n", namespace, authority, "-o", `jsonpath={.data.previous\.crt}`); data == "" {
			waiting = append(waiting, authority)
		}
	}
	if len(waiting) > 0 {
		return errors.New("not yet: " + strings.Join(waiting, ", "))
	}
	return nil
}

// memoryOf is how much memory the processes of a namespace's pods have, in MiB, without pages of files, which the system takes back.
func memoryOf(t *testing.T, namespace string) int64 {
	t.Helper()
	uids := strings.Fields(management().run(t, "get", "pods", "-n", namespace, "-o", "jsonpath={.items[*].metadata.uid}"))
	total := int64(0)
	for _, file := range list("/proc/[0-9]*/status") {
		status, err := os.ReadFile(file)
		groups, also := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup"))
		if err != nil || also != nil || !slices.ContainsFunc(uids, func(uid string) bool { return strings.Contains(string(groups), "/pod"+uid+"/") }) {
			continue // it has ended, or is somebody else's
		}
		for line := range strings.Lines(string(status)) {
			if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "RssAnon:" {
				kib, _ := strconv.ParseInt(fields[1], 10, 64) // digits
				total += kib
			}
		}
	}
	return total >> 10
}

// generations are how many certificates of an authority are trusted at present.
func generations(t *testing.T, namespace, authority string) int {
	t.Helper()
	n := 0
	for _, key := range []string{`ca\.crt`, `next\.crt`, `previous\.crt`} {
		if management().run(t, "get", "secret", "-n", namespace, authority, "-o", "jsonpath={.data."+key+"}") != "" {
			n++
		}
	}
	return n
}

// TestLiveHibernation puts the demo cluster to sleep and wakes it.
func TestLiveHibernation(t *testing.T) {
	m := management()
	awaitWorkers(t, "demo", 2)
	hosted := hostedKubectl(t, "demo")
	hosted.run(t, "create", "configmap", "kept", "--from-literal=a=b")
	t.Cleanup(func() { _, _ = hosted.try(t, "delete", "configmap", "kept") })
	state := func() string {
		return m.run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", `jsonpath={.status.conditions[?(@.type=="Hibernated")].reason}`)
	}
	before := memoryOf(t, demoNamespace)
	start := time.Now()
	t.Log(strings.TrimSpace(run(t, time.Minute, "hypershift", "hibernate", "demo", kubeconfigFlag())))
	eventually(t, sleepTime, "sleep", func() error {
		if got := state(); got != "Asleep" {
			return fmt.Errorf("Hibernated has reason %q", got)
		}
		return nil
	})
	asleep := memoryOf(t, demoNamespace)
	t.Logf("asleep after %s, with pods %s", time.Since(start).Round(time.Second), strings.Join(names(t, "pods", demoNamespace), ", "))
	t.Logf("processes of the control plane and the workers had %d MiB of memory, and have %d MiB", before, asleep)
	if asleep > before/2 {
		t.Errorf("sleep frees %d of %d MiB", before-asleep, before)
	}
	start = time.Now()
	run(t, time.Minute, "hypershift", "wake", "demo", kubeconfigFlag())
	eventually(t, sleepTime, "the control plane", func() error {
		got, err := hosted.try(t, "get", "configmap", "kept", "-o", "jsonpath={.data.a}")
		if err != nil || got != "b" {
			return errors.Join(fmt.Errorf("what was stored is %q", got), err)
		}
		return nil
	})
	t.Logf("the API serves after %s", time.Since(start).Round(time.Second))
	awaitWorkers(t, "demo", 2)
	eventually(t, sleepTime, "no word of sleep", func() error {
		if got := state(); got != "" {
			return fmt.Errorf("Hibernated has reason %q", got)
		}
		return nil
	})
	t.Logf("workers are Ready after %s", time.Since(start).Round(time.Second))
}
