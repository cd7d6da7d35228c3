//go:build e2e && fleet

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// oddMoments makes hosted clusters with a worker and destroys each at another moment of its youth.
func oddMoments(t *testing.T) {
	release := management().run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")
	for _, moment := range []struct {
		name  string
		await func(t *testing.T, namespace string)
	}{
		{"at-once", func(*testing.T, string) {}},
		{"no-etcd-yet", func(t *testing.T, namespace string) { awaitObject(t, "pod", namespace, "etcd-0") }},
		{"no-api-yet", func(t *testing.T, namespace string) { awaitObject(t, "deployment", namespace, "kube-apiserver") }},
		{"operators-killed", func(t *testing.T, namespace string) {
			awaitObject(t, "deployment", namespace, "control-plane-operator")
			management().run(t, "delete", "pod", "-n", namespace, "-l", "hypershift.openshift.io/control-plane-component=control-plane-operator", "--grace-period=0", "--force", "--wait=false")
			management().run(t, "delete", "pod", "-n", "hypershift", "-l", "name=operator", "--grace-period=0", "--force", "--wait=false")
		}},
		{"worker-boots", func(t *testing.T, namespace string) { awaitObject(t, "localmachine", namespace, "") }},
		{"api-dead", func(t *testing.T, namespace string) {
			// Its worker has a node, which nobody can drain any more.
			name := strings.TrimPrefix(namespace, "clusters-")
			eventually(t, clusterStart, "a worker", func() error {
				got, err := management().try(t, "get", "nodepool", "-n", "clusters", name, "-o", `jsonpath={.status.conditions[?(@.type=="AllNodesHealthy")].status}`)
				if err != nil || got != "True" {
					return errors.Join(fmt.Errorf("AllNodesHealthy is %q", got), err)
				}
				return nil
			})
			killControlPlane(t, name)
		}},
	} {
		t.Run("When it is destroyed "+moment.name+" it should go", func(t *testing.T) {
			before := machineState(t)
			run(t, time.Minute, "hypershift", "create", "cluster", "local", "--name", moment.name, "--release-image", release, "--node-pool-replicas", "1", kubeconfigFlag())
			moment.await(t, "clusters-"+moment.name)
			start := time.Now()
			run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", moment.name, kubeconfigFlag())
			t.Logf("destroying took %s", time.Since(start).Round(time.Second))
			expectGone(t, moment.name)
			// Counted, not by name: an operator that was killed has another pod.
			// A kube-apiserver whose pod was deleted by force still ends in its own time.
			eventually(t, 3*time.Minute, "the machine as before", func() error { return machineState(t).countsAtMost(before) })
		})
	}
}

// awaitObject waits until an object exists, or any of the kind without a name.
func awaitObject(t *testing.T, kind, namespace, name string) {
	t.Helper()
	eventually(t, clusterStart, kind+" "+name, func() error {
		out, err := management().try(t, strings.Fields("get "+kind+" -n "+namespace+" -o name "+name)...)
		if err != nil || strings.TrimSpace(out) == "" {
			return errors.Join(fmt.Errorf("there is none: %s", out), err)
		}
		return nil
	})
}

// countsAtMost says of what there is more than before.
func (after machine) countsAtMost(before machine) error {
	for what, pair := range pairs(before, after) {
		if len(pair[1]) > len(pair[0]) {
			return fmt.Errorf("there were %d %s, there are %d", len(pair[0]), what, len(pair[1]))
		}
	}
	return nil
}
