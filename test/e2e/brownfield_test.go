//go:build e2e && (backup || brownfield || migration)

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	operatorImage = "10.244.0.1:5000/hypershift/hypershift:local"
	releaseImage  = "10.244.0.1:5000/hypershift/release:" + demoVersion
	demoVersion   = "1.36.3"
	// The hosted cluster from before private types, and one from after.
	oldCluster, newCluster = "old", "new"
	workersStart           = 6 * time.Minute
)

// TestBrownfield takes a management cluster with a hosted cluster of standard Cluster API types to private ones.
func TestBrownfield(t *testing.T) {
	noCluster(t)
	inOrder(t, []step{
		{"When standard types are installed a hosted cluster should use them", standardFirst},
		{"When private types are installed the cluster from before should not move", privateBeside},
		{"When a new hosted cluster is made it should use private types", newOneIsPrivate},
		{"When both grow each should get its worker", bothGrow},
		{"When a person looks at machines both should show them under their standard names", bothLookTheSame},
		{"When standard types are asked for again it should be refused", noWayBack},
		{"When the cluster from before is destroyed its operator should go and the other cluster stay", oldOneGoes},
		{"When the new one is destroyed nothing should be left", func(t *testing.T) {
			run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", newCluster, kubeconfigFlag())
			expectGone(t, newCluster)
		}},
	})
}

func install(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return try(t, 5*time.Minute, "hypershift", append([]string{"install", "--hypershift-image", operatorImage, "--limit-crd-install=AWS,Azure,IBMCloud,KubeVirt,Agent,PowerVS,OpenStack,GCP,Local", "--wait-until-available", kubeconfigFlag()}, args...)...)
}

// createWithWorker makes a hosted cluster with one worker and returns a client for it.
func createWithWorker(t *testing.T, name string) kubectl {
	t.Helper()
	run(t, workersStart, "hypershift", "create", "cluster", "local", "--name", name, "--release-image", releaseImage, "--node-pool-replicas", "1",
		"--wait", kubeconfigFlag())
	k := hostedKubectl(t, name)
	awaitNodes(t, k, 1)
	return k
}

func awaitNodes(t *testing.T, k kubectl, want int) {
	t.Helper()
	eventually(t, workersStart, fmt.Sprintf("%d Ready workers", want), func() error {
		got, err := k.try(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
		if ready := strings.TrimSpace(strings.Repeat("True ", want)); err != nil || strings.TrimSpace(got) != ready {
			return errors.Join(fmt.Errorf("Ready of the nodes is %q, want %q", got, ready), err)
		}
		return nil
	})
}

// machinesIn lists the names and UIDs of a cluster's machines in one group.
func machinesIn(t *testing.T, group, name string) string {
	t.Helper()
	out, err := management().try(t, "get", "machines."+group, "-n", "clusters-"+name, "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}`)
	if err != nil && !strings.Contains(out, "the server doesn't have a resource type") {
		t.Fatalf("machines.%s of %s: %v\n%s", group, name, err, out)
	}
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

const (
	standardGroup = "cluster.x-k8s.io"
	privateGroup  = "cluster.hypershift.openshift.io"
)

func standardFirst(t *testing.T) {
	run(t, 25*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir, "--skip-install", "--skip-demo")
	if out, err := install(t, "--private-capi-types=false"); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	createWithWorker(t, oldCluster)
	if standard, private := machinesIn(t, standardGroup, oldCluster), machinesIn(t, privateGroup, oldCluster); standard == "" || private != "" {
		t.Errorf("machines are %q in standard types, %q in private ones", standard, private)
	}
}

func privateBeside(t *testing.T) {
	before := machinesIn(t, standardGroup, oldCluster)
	pods := func() string {
		return management().run(t, "get", "pods", "-n", "clusters-"+oldCluster, "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}`)
	}
	podsBefore := pods()
	out, err := install(t, "--private-capi-types")
	if err != nil || !strings.Contains(out, "clusters/"+oldCluster+" keep standard types") {
		t.Fatalf("install does not say who keeps standard types (%v):\n%s", err, out)
	}
	management().run(t, "rollout", "status", "-n", "hypershift", "deployment/operator-legacy", "--timeout=50s")
	if after := machinesIn(t, standardGroup, oldCluster); after != before {
		t.Errorf("machines were %s, are %s", before, after)
	}
	if after := pods(); after != podsBefore {
		t.Errorf("pods were %s, are %s", podsBefore, after)
	}
}

func newOneIsPrivate(t *testing.T) {
	createWithWorker(t, newCluster)
	if standard, private := machinesIn(t, standardGroup, newCluster), machinesIn(t, privateGroup, newCluster); standard != "" || private == "" {
		t.Errorf("machines are %q in standard types, %q in private ones", standard, private)
	}
	for cluster, want := range map[string]string{oldCluster: "False", newCluster: "True"} {
		got := management().run(t, "get", "hostedcluster", "-n", "clusters", cluster, "-o", `jsonpath={.status.conditions[?(@.type=='PrivateCAPITypes')].status}`)
		if got != want {
			t.Errorf("PrivateCAPITypes of %s is %q, want %s", cluster, got, want)
		}
	}
}

func bothGrow(t *testing.T) {
	for _, name := range []string{oldCluster, newCluster} {
		management().run(t, "scale", "nodepool", "-n", "clusters", name, "--replicas=2")
	}
	for _, name := range []string{oldCluster, newCluster} {
		awaitNodes(t, kubectl{filepath.Join(stateDir, name+".kubeconfig")}, 2)
	}
}

func bothLookTheSame(t *testing.T) {
	for _, name := range []string{oldCluster, newCluster} {
		out := run(t, time.Minute, "hypershift", "capi", "--name", name, kubeconfigFlag(), "--", filepath.Join(root(t), "bin", "kubectl"), "get", "machines,machinedeployments", "-o", "name")
		if strings.Count(out, "machine."+standardGroup+"/") != 2 || !strings.Contains(out, "machinedeployment."+standardGroup+"/") || strings.Contains(out, privateGroup) {
			t.Errorf("machines of %s are shown as\n%s", name, out)
		}
	}
}

func noWayBack(t *testing.T) {
	out, err := install(t, "--private-capi-types=false")
	if err == nil || !strings.Contains(out, "clusters/"+newCluster) || !strings.Contains(out, "--private-capi-types=true") {
		t.Errorf("install took standard types, or does not say what to do (%v):\n%s", err, out)
	}
}

func oldOneGoes(t *testing.T) {
	before := machinesIn(t, privateGroup, newCluster)
	run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", oldCluster, kubeconfigFlag())
	expectGone(t, oldCluster)
	eventually(t, 2*time.Minute, "the end of the operator for clusters from before", func() error {
		out, err := management().try(t, "get", "deployment", "-n", "hypershift", "operator-legacy", "--ignore-not-found", "-o", "name")
		if err != nil || strings.TrimSpace(out) != "" {
			return errors.Join(fmt.Errorf("left: %s", out), err)
		}
		return nil
	})
	if after := machinesIn(t, privateGroup, newCluster); after != before {
		t.Errorf("machines of the other cluster were %s, are %s", before, after)
	}
}
