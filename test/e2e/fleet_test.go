//go:build e2e && fleet

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	second          = "second" // a hosted cluster without workers
	secondNamespace = "clusters-second"
	fleetName       = "fleet-hello"
	// clusterStart is how long a control plane may take to come up, on a busy machine.
	clusterStart = 6 * time.Minute
	// outageSeen is how long an outage may take to be seen: probes, and an idle connection that is given up.
	outageSeen = 2 * time.Minute
)

func secondCluster() kubectl { return kubectl{filepath.Join(stateDir, "second.kubeconfig")} }

// TestFleet is one test with ordered steps, as TestUp is. It is apart from that because it takes some minutes more.
func TestFleet(t *testing.T) {
	noCluster(t)
	inOrder(t, []step{
		{"When up runs it should end with an add-on in the demo cluster", func(t *testing.T) {
			run(t, 25*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir)
			addonDelivered(t)
		}},
		{"When a second hosted cluster is made both should be a fleet", twoClusters},
		{"When a fleet gets a bad version it should stop, and the fix should go on", fleetRollout},
		{"When one of two hosted clusters is killed the other's phases should go on, and its own come back by themselves", oneIsKilled},
		{"When a hosted cluster with a dead API is destroyed nothing of it or its packages should be left", deadOneIsDestroyed},
		{"When hosted clusters are destroyed at odd moments nothing of them should be left", oddMoments},
	})
}

// nodeOfUp is where the management cluster's only node answers at node ports.
const nodeOfUp = "10.244.0.1"

// twoClusters makes a second hosted cluster, published by node ports, and a fleet of both.
func twoClusters(t *testing.T) {
	release := management().run(t, "get", "hostedcluster", "-n", "clusters", "demo", "-o", "jsonpath={.spec.release.image}")
	run(t, clusterStart, "hypershift", "create", "cluster", "local", "--name", second, "--release-image", release, "--labels", "fleet=e2e", "--labels", "risk=canary",
		"--external-api-server-address", nodeOfUp, "--wait", kubeconfigFlag())
	management().run(t, "label", "hostedcluster", "-n", "clusters", "demo", "fleet=e2e", "risk=early")
	hostedKubectl(t, second)
	// The service, the status and the kubeconfig speak of the same port.
	port := management().run(t, "get", "service", "-n", secondNamespace, "kube-apiserver", "-o", "jsonpath={.spec.type} {.spec.ports[0].nodePort}")
	status := management().run(t, "get", "hostedcluster", "-n", "clusters", second, "-o", "jsonpath={.status.controlPlaneEndpoint.host} {.status.controlPlaneEndpoint.port}")
	server := secondCluster().run(t, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	number, isNodePort := strings.CutPrefix(port, "NodePort ")
	if !isNodePort || status != nodeOfUp+" "+number || server != "https://"+nodeOfUp+":"+number {
		t.Errorf("the API is published at %s, its status is %q, its kubeconfig names %s; want node port of %s", port, status, server, nodeOfUp)
	}
	if got := secondCluster().run(t, "get", "--raw", "/readyz"); got != "ok" {
		t.Errorf("/readyz at the node port says %q", got)
	}
}

// fleetManifest is a HostedClusterPackage of the example add-on, with the image of its application at a tag.
func fleetManifest(t *testing.T, tag string) string {
	t.Helper()
	file := filepath.Join(stateDir, "fleet-"+tag+".yaml") // kubectl takes a comma, as names of tests have, for the end of a path
	text := fmt.Sprintf(`apiVersion: package-operator.run/v1alpha1
kind: HostedClusterPackage
metadata: {name: %s}
spec:
  hostedClusterSelector: {matchLabels: {fleet: e2e}}
  strategy: {rollingUpgrade: {maxUnavailable: 1}}
  partition: {labelKey: risk, order: {static: [canary, early]}}
  template:
    spec:
      image: 10.244.0.1:5000/examples/hello:1.0.0
      config: {image: "10.244.0.1:5000/hypershift/webapp", tag: %q}
`, fleetName, tag)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// fleetRollout is what an engineer does with a fleet: look, roll out, see a bad version stop, fix it.
func fleetRollout(t *testing.T) {
	rollout := func(args ...string) string {
		return run(t, 5*time.Minute, "kubectl-package", append(append([]string{"rollout"}, args...), kubeconfigFlag())...)
	}
	name := "hostedclusterpackage/" + fleetName
	management().run(t, "apply", "-f", fleetManifest(t, "1.0.0"))
	rollout("status", name, "--timeout", "4m")
	for _, k := range []kubectl{hosted(), secondCluster()} {
		k.run(t, "get", "configmap", "-n", "default", fleetName)
	}
	onlook(t, fleetName, 1)
	bad := fleetManifest(t, "no-such-version")
	plan := rollout("plan", "-f", bad)
	if !strings.Contains(plan, "canary  1/1          clusters/second") || !strings.Contains(plan, "early   1/1          clusters/demo") {
		t.Errorf("the plan does not go through the groups in order:\n%s", plan)
	}
	management().run(t, "apply", "-f", bad)
	eventually(t, 2*time.Minute, "the bad version to stop", func() error {
		out, err := try(t, time.Minute, "kubectl-package", "rollout", "status", name, "--watch=false", kubeconfigFlag())
		if err != nil || !strings.Contains(out, "Unavailable, which uses up maxUnavailable 1: clusters/second.") {
			return fmt.Errorf("status says %s (%w)", out, err)
		}
		return nil
	})
	if tag := packageTag(t, "clusters-demo"); tag != "1.0.0" {
		t.Errorf("the bad version went on to the next group, which has %s", tag)
	}
	management().run(t, "apply", "-f", fleetManifest(t, "2.0.0"))
	rollout("status", name, "--timeout", "4m")
	for _, ns := range []string{"clusters-demo", secondNamespace} {
		if tag := packageTag(t, ns); tag != "2.0.0" {
			t.Errorf("%s has %s after the fix", ns, tag)
		}
	}
	if history := rollout("history", name); !strings.Contains(history, "config.tag") {
		t.Errorf("the history does not say what changed:\n%s", history)
	}
}

func packageTag(t *testing.T, namespace string) string {
	t.Helper()
	return management().run(t, "get", "package", "-n", namespace, fleetName, "-o", "jsonpath={.spec.config.tag}")
}

// killControlPlane stops the operators of a hosted cluster by a pause and then its API and its etcd, so that nobody brings them back.
func killControlPlane(t *testing.T, name string) {
	t.Helper()
	namespace := "clusters-" + name
	management().run(t, "patch", "hostedcluster", "-n", "clusters", name, "--type=merge", "-p", `{"spec":{"pausedUntil":"true"}}`)
	eventually(t, time.Minute, "the pause", func() error {
		got, err := management().try(t, "get", "hostedcontrolplane", "-n", namespace, name, "-o", "jsonpath={.spec.pausedUntil}")
		if err != nil || got != "true" {
			return fmt.Errorf("pausedUntil is %q (%w)", got, err)
		}
		return nil
	})
	management().run(t, "scale", "-n", namespace, "statefulset/etcd", "deployment/kube-apiserver", "--replicas=0")
	// They would take minutes to end in order, which is not what a machine that fails does.
	eventually(t, time.Minute, "the API to be dead", func() error {
		out, err := management().try(t, "get", "pods", "-n", namespace, "-o", "name")
		var alive []string
		for _, pod := range strings.Fields(out) {
			if strings.HasPrefix(pod, "pod/etcd-") || strings.HasPrefix(pod, "pod/kube-apiserver-") {
				alive = append(alive, pod)
			}
		}
		if err != nil || len(alive) == 0 {
			return err
		}
		_, err = management().try(t, append([]string{"delete", "-n", namespace, "--force", "--grace-period=0", "--wait=false"}, alive...)...)
		return fmt.Errorf("there are %s (%w)", alive, err)
	})
}

// phaseSays waits for the condition Available of the phase in the hosted cluster.
func phaseSays(t *testing.T, namespace, want string, within time.Duration) {
	t.Helper()
	eventually(t, within, "the phase in the hosted cluster of "+namespace, func() error {
		got, err := management().try(t, "get", "objectsetphases", "-n", namespace, "-l", "package-operator.run/instance="+fleetName, "-o",
			`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Available")].status} {.status.conditions[?(@.type=="Available")].reason}{"\n"}{end}`)
		for line := range strings.Lines(got) {
			if strings.TrimSpace(line) == want {
				return nil
			}
		}
		return fmt.Errorf("it says %q, not %s (%w)", got, want, err)
	})
}

// oneIsKilled kills one of two hosted clusters: the other's phases go on, the killed one's say what is wrong, and go on by themselves.
func oneIsKilled(t *testing.T) {
	killControlPlane(t, second)
	phaseSays(t, secondNamespace, "Unknown TargetUnreachable", outageSeen)
	phaseSays(t, "clusters-demo", "True Available", 0)
	hosted().run(t, "delete", "configmap", "-n", "default", fleetName)
	eventually(t, 30*time.Second, "the other cluster's ConfigMap", func() error {
		_, err := hosted().try(t, "get", "configmap", "-n", "default", fleetName)
		return err
	})
	management().run(t, "patch", "hostedcluster", "-n", "clusters", second, "--type=json", "-p", `[{"op":"remove","path":"/spec/pausedUntil"}]`)
	phaseSays(t, secondNamespace, "True Available", clusterStart)
}

// deadOneIsDestroyed ends a hosted cluster whose API is dead, with a package in it, and then the fleet.
func deadOneIsDestroyed(t *testing.T) {
	killControlPlane(t, second)
	start := time.Now()
	run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", second, kubeconfigFlag())
	t.Logf("destroying a cluster with a dead API took %s", time.Since(start).Round(time.Second))
	expectGone(t, second)
	management().run(t, "delete", "hostedclusterpackage", fleetName, "--wait")
	eventually(t, time.Minute, "nothing of the fleet", func() error {
		out, err := management().try(t, "get", "packages,objectdeployments,objectsets,objectsetphases,deployments", "-A", "-l", "package-operator.run/instance="+fleetName, "-o", "name")
		if err != nil || strings.TrimSpace(out) != "" {
			return fmt.Errorf("left: %s (%w)", out, err)
		}
		if out, err := hosted().try(t, "get", "configmap", "-n", "default", fleetName); err == nil {
			return fmt.Errorf("left in the hosted cluster: %s", out)
		}
		return nil
	})
}
