//go:build e2e && sizes

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/placement"
)

const (
	// outer is the hosted cluster that is the management cluster of this test, and serving its NodePool of nodes for requests.
	outer, serving = "outer", "serving"
	outerNamespace = "clusters-" + outer
	// placementTime is for a highly available control plane on nodes that are containers of a machine with two processors.
	placementTime = 12 * time.Minute
	// deadTime is how long calls to a machine that died without a word may go unanswered: until its node is called not ready, after 50 s, connections are
	// still sent there.
	deadTime = 90 * time.Second
)

// places are the nodes for requests: two pairs in two zones, and one node more of the first.
var places = []struct{ pair, zone string }{{"pair-a", "east"}, {"pair-a", "west"}, {"pair-a", "east"}, {"pair-b", "east"}, {"pair-b", "west"}}

// TestPlacement has hosted clusters with nodes of their own for requests on a management cluster of seven nodes, which is a hosted cluster itself.
func TestPlacement(t *testing.T) {
	noCluster(t)
	inOrder(t, []step{
		{"When a hosted cluster has seven nodes it should do as a management cluster", outerStarts},
		{"When three hosted clusters want nodes of their own two should get a pair each, and the third should say what it waits for", threeWant},
		{"When a machine for requests dies another node of its pair and zone should take its place", machineDies},
		{"When a node for requests is drained no request should fail", nodeDrained},
		{"When a hosted cluster changes its size it should move within its pair", sizeMoves},
		{"When a hosted cluster no longer asks for nodes of its own the next should get its pair", nextGetsPair},
		{"When a hosted cluster is destroyed its pair should be held by placeholders, and given to one that asks anew", pairComesBack},
		{"When all are destroyed all nodes should be as they were", allGoes},
	})
	for _, f := range findings {
		t.Log("What was found: " + f)
	}
}

func outerKubectl() kubectl { return kubectl{filepath.Join(stateDir, outer+".kubeconfig")} }
func outerFlag() string     { return "--kubeconfig=" + outerKubectl().kubeconfig }

// placementRelease is the release of "hypershift local up", which all clusters of this test have.
func placementRelease(t *testing.T) string {
	return management().run(t, "get", "hostedcluster", "-n", "clusters", outer, "-o", "jsonpath={.spec.release.image}")
}

func outerStarts(t *testing.T) {
	run(t, 25*time.Minute, "hypershift", "local", "up", "--state-dir", stateDir, "--skip-demo")
	m := management()
	image := m.run(t, "get", "deployment", "-n", "hypershift", "operator", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	run(t, placementTime, "hypershift", "create", "cluster", "local", "--name", outer, "--release-image", "10.244.0.1:5000/hypershift/release:1.36.3", "--node-pool-replicas", "2", kubeconfigFlag(), "--wait", "--timeout", "10m")
	hostedKubectl(t, outer)
	run(t, time.Minute, "hypershift", "create", "nodepool", "local", "--cluster-name", outer, "--name", serving, "--replicas", "0", kubeconfigFlag())
	m.run(t, "patch", "nodepool", "-n", "clusters", serving, "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"replicas":%d,"nodeLabels":{%[2]q:"true",%[3]q:"small"},"taints":[{"key":%[2]q,"value":"true","effect":"NoSchedule"}]}}`,
		len(places), hyperv1.RequestServingComponentLabel, hyperv1.ClusterSizeLabel))
	var all []seenNode
	eventually(t, placementTime, "seven Ready nodes", func() error {
		all = nodesSeen(t)
		if n := len(all); n != 2+len(places) {
			return fmt.Errorf("there are %d", n)
		}
		for _, n := range all {
			if !n.ready {
				return fmt.Errorf("%s is not ready", n.Name)
			}
		}
		if n := len(forRequests(all)); n != len(places) {
			return fmt.Errorf("%d have the label of nodes for requests", n)
		}
		return nil
	})
	k := outerKubectl()
	for i, n := range forRequests(all) {
		giveZone(t, n.Name, places[i].pair, places[i].zone)
	}
	for i, n := range slices.DeleteFunc(all, func(n seenNode) bool { return n.forRequests() }) {
		k.run(t, "label", "node", n.Name, corev1.LabelTopologyZone+"="+places[i].zone)
	}
	run(t, placementTime, "hypershift", "install", "--hypershift-image", image, "--limit-crd-install", "None", "--enable-size-tagging", "--wait-until-available", outerFlag())
	k.applyYAML(t, fmt.Sprintf(placementSizes, ""))
}

// placementSizes are the usual sizes, which are changed at once here; of the smallest, what else it has is left out.
const placementSizes = `apiVersion: scheduling.hypershift.openshift.io/v1alpha1
kind: ClusterSizingConfiguration
metadata: {name: cluster}
spec:
  concurrency: {slidingWindow: 1s, limit: 10}
  transitionDelay: {increase: 1s, decrease: 1s}
  sizes:
  - {name: small, criteria: {from: 0, to: 10}%s}
  - {name: medium, criteria: {from: 11, to: 100}}
  - {name: large, criteria: {from: 101}}
`

func giveZone(t *testing.T, node, pair, zone string) {
	t.Helper()
	outerKubectl().run(t, "label", "node", node, hyperv1.PairedNodesLabel+"="+pair, corev1.LabelTopologyZone+"="+zone)
}

// wantsNodes makes a hosted cluster without workers that asks for nodes of its own.
func wantsNodes(t *testing.T, name string, policy hyperv1.AvailabilityPolicy) {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "pull-secret.json")
	if err := os.WriteFile(secret, []byte(`{"auths":{"registry.example.com":{"auth":"dTpw"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	address := ""
	for _, n := range nodesSeen(t) {
		if !n.forRequests() {
			address = n.address
		}
	}
	run(t, time.Minute, "hypershift", "create", "cluster", "none", "--name", name, "--release-image", placementRelease(t), "--pull-secret", secret, "--external-api-server-address", address,
		"--node-pool-replicas=-1", "--control-plane-availability-policy", string(policy), "--annotations", hyperv1.TopologyAnnotation+"="+hyperv1.DedicatedRequestServingComponentsTopology,
		"--annotations", lessForEtcd, outerFlag())
}

func threeWant(t *testing.T) {
	start := time.Now()
	wantsNodes(t, "one", hyperv1.HighlyAvailable)
	awaitNodesReady(t, "one", "True", placement.Claimed)
	wantsNodes(t, "two", hyperv1.SingleReplica)
	awaitNodesReady(t, "two", "True", placement.Claimed)
	wantsNodes(t, "three", hyperv1.SingleReplica)
	awaitNodesReady(t, "three", "False", placement.WaitingForNodes)
	for _, name := range []string{"one", "two"} {
		awaitHosted(t, name)
		hostedIn(t, outerFlag(), name)
	}
	findings = append(findings, fmt.Sprintf("a highly available control plane and one of one replica, with nodes of their own, were there after %s", time.Since(start).Round(time.Second)))

	if got := owned(t, "one"); len(got) != 2 || got[0].pair() != "pair-a" || got[1].pair() != "pair-a" || got[0].zone() == got[1].zone() {
		t.Errorf("one has %v, want two of pair-a in different zones", got)
	}
	if got := owned(t, "two"); len(got) != 1 || got[0].pair() != "pair-b" {
		t.Errorf("two has %v, want one of pair-b", got)
	}
	if got := owned(t, "three"); len(got) != 0 {
		t.Errorf("three has %v, and no pair is free", got)
	}
	everybodyInPlace(t, "when two have nodes")
	said := conditionIn(t, "three", hyperv1.RequestServingNodesReady).Message
	if !strings.Contains(said, "No pair is free") || !strings.Contains(said, hyperv1.PairedNodesLabel+"=NAME") {
		t.Errorf("three says %q", said)
	}
	t.Logf("three: %s", said)
	t.Logf("three: %s", conditionIn(t, "three", "Available").Message)
	if got := apiServers(t, "three"); slices.ContainsFunc(got, func(p seenPod) bool { return p.node != "" }) {
		t.Errorf("API servers of three are at %v, and it has no nodes", got)
	}
	why := run(t, time.Minute, "hypershift", "why", "hostedcluster/three", outerFlag())
	t.Logf("hypershift why: %s", why)
	if !strings.Contains(why, hyperv1.PairedNodesLabel) {
		t.Errorf("hypershift why doesn't say which nodes are missing")
	}
	for _, like := range []string{"one", "two"} {
		if fit := fits(t, like); fit.Count != 0 || !strings.Contains(fit.Lack, "pair of nodes") {
			t.Errorf("capacity says that %d more like %s fit: %s", fit.Count, like, fit.Lack)
		}
	}
}

// machineDies pulls the plug of a machine, and has the machine replaced as a health check would.
func machineDies(t *testing.T) {
	victim, spare := ofZone(t, owned(t, "one"), "east"), ofZone(t, unowned(t, "pair-a"), "east")
	m := management()
	pod := m.run(t, "get", "pods", "-n", outerNamespace, "-o", fmt.Sprintf(`jsonpath={.items[?(@.status.podIP==%q)].metadata.name}`, victim.address))
	machine := m.run(t, "get", "machines.cluster.hypershift.openshift.io", "-n", outerNamespace, "-o", fmt.Sprintf(`jsonpath={.items[?(@.status.nodeRef.name==%q)].metadata.name}`, victim.Name))
	if pod == "" || machine == "" {
		t.Fatalf("node %s has pod %q and Machine %q", victim.Name, pod, machine)
	}
	calls := callsTo(t, "one")
	start := time.Now()
	m.run(t, "delete", "pod", "-n", outerNamespace, pod, "--grace-period=0", "--force")
	eventually(t, placementTime, "a node in place of "+victim.Name, func() error { return owns(t, "one", spare.Name) })
	taken := time.Since(start)
	if c := conditionIn(t, "one", hyperv1.RequestServingNodesReady); c.Status != "True" {
		t.Errorf("with the node in its place RequestServingNodesReady is %s: %s", c.Status, c.Message)
	}
	m.run(t, "delete", "machines.cluster.hypershift.openshift.io", "-n", outerNamespace, machine, "--wait=false")
	eventually(t, placementTime, "an API server there", func() error { return servedFrom(t, "one", spare.Name) })
	served := time.Since(start)
	awaitNodesReady(t, "one", "True", placement.Claimed)
	calls.report(t, "a machine for requests died", deadTime)
	everybodyInPlace(t, "after a machine died")
	findings = append(findings, fmt.Sprintf("a machine died: another node was taken after %s, and had an API server after %s", taken.Round(time.Second), served.Round(time.Second)))
	if got := ofZone(t, owned(t, "one"), "east"); got.Name != spare.Name {
		t.Errorf("in the east it has %s, want %s", got.Name, spare.Name)
	}
}

func nodeDrained(t *testing.T) {
	fresh := ""
	eventually(t, placementTime, "the machine in place of the one that died", func() error {
		for _, n := range forRequests(nodesSeen(t)) {
			if n.pair() == "" && n.ready {
				fresh = n.Name
				return nil
			}
		}
		return errors.New("there is none")
	})
	giveZone(t, fresh, "pair-a", "west")
	victim := ofZone(t, owned(t, "one"), "west")
	calls := callsTo(t, "one")
	start := time.Now()
	run(t, placementTime, "kubectl", outerFlag(), "drain", victim.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=8m")
	eventually(t, placementTime, "an API server on the other node", func() error { return servedFrom(t, "one", fresh) })
	awaitNodesReady(t, "one", "True", placement.Claimed)
	findings = append(findings, fmt.Sprintf("a node was drained: an API server ran in its place after %s", time.Since(start).Round(time.Second)))
	calls.report(t, "a node for requests was drained", longestSilence)
	calls.expectNoneFailed(t)
	if err := owns(t, "one", victim.Name); err == nil {
		t.Errorf("%s is still of the cluster", victim.Name)
	}
	everybodyInPlace(t, "after a drain")
	outerKubectl().run(t, "uncordon", victim.Name)
}

// sizeMoves makes the free node of pair-b one for another size, and gives two that size.
func sizeMoves(t *testing.T) {
	k := outerKubectl()
	before, other := owned(t, "two")[0], unowned(t, "pair-b")[0]
	k.run(t, "label", "node", other.Name, "--overwrite", hyperv1.ClusterSizeLabel+"=medium")
	k.run(t, "annotate", "hostedcluster", "-n", "clusters", "two", hyperv1.ClusterSizeOverrideAnnotation+"=medium")
	eventually(t, placementTime, "an API server on a node of the other size", func() error { return servedFrom(t, "two", other.Name) })
	eventually(t, placementTime, "the node of the old size to be nobody's", func() error {
		if owns(t, "two", before.Name) == nil {
			return errors.New("two has it still")
		}
		return nil
	})
	awaitHosted(t, "two")
	awaitNodesReady(t, "three", "False", placement.WaitingForNodes) // a pair with a claim is not for others, though a node of it is nobody's
	everybodyInPlace(t, "after another size")
	k.run(t, "annotate", "hostedcluster", "-n", "clusters", "two", hyperv1.ClusterSizeOverrideAnnotation+"-")
	eventually(t, placementTime, "an API server where it was before", func() error { return servedFrom(t, "two", before.Name) })
	eventually(t, placementTime, "the node of the other size to be nobody's", func() error {
		if owns(t, "two", other.Name) == nil {
			return errors.New("two has it still")
		}
		return nil
	})
	k.run(t, "label", "node", other.Name, "--overwrite", hyperv1.ClusterSizeLabel+"=small")
	awaitHosted(t, "two")
}

func nextGetsPair(t *testing.T) {
	outerKubectl().run(t, "annotate", "hostedcluster", "-n", "clusters", "two", hyperv1.TopologyAnnotation+"-")
	start := time.Now()
	awaitNodesReady(t, "three", "True", placement.Claimed)
	awaitHosted(t, "three")
	awaitHosted(t, "two")
	findings = append(findings, fmt.Sprintf("a pair that is no longer asked for: the next hosted cluster had it and an API server there after %s", time.Since(start).Round(time.Second)))
	if c := conditionIn(t, "two", hyperv1.RequestServingNodesReady); c.Status != "" {
		t.Errorf("two asks for no nodes, and says of them %s: %s", c.Reason, c.Message)
	}
	if got := owned(t, "three"); len(got) != 1 || got[0].pair() != "pair-b" {
		t.Errorf("three has %v, want one of pair-b", got)
	}
	everybodyInPlace(t, "after a pair was given up")
}

func pairComesBack(t *testing.T) {
	k := outerKubectl()
	run(t, placementTime, "hypershift", "destroy", "cluster", "none", "--name", "three", outerFlag())
	eventually(t, placementTime, "pair-b to be nobody's", func() error {
		if got := len(unowned(t, "pair-b")); got != 2 || slices.Contains(claims(t), "pair-b") {
			return fmt.Errorf("%d nodes of it are nobody's, claims are %v", got, claims(t))
		}
		return nil
	})
	if fit := fits(t, "one"); fit.Count != 1 {
		t.Errorf("capacity says that %d more fit, want 1: %s", fit.Count, fit.Lack)
	}
	k.applyYAML(t, fmt.Sprintf(placementSizes, ", management: {placeholders: 1}"))
	holders := func() []seenPod { return podsIn(t, placement.Namespace) }
	eventually(t, placementTime, "placeholders on pair-b", func() error {
		on := map[string]bool{}
		for _, p := range holders() {
			on[p.node] = p.running
		}
		for _, n := range unowned(t, "pair-b") {
			if !on[n.Name] {
				return fmt.Errorf("none runs on %s: %v", n.Name, holders())
			}
		}
		return nil
	})
	k.run(t, "annotate", "hostedcluster", "-n", "clusters", "two", hyperv1.TopologyAnnotation+"="+hyperv1.DedicatedRequestServingComponentsTopology)
	awaitNodesReady(t, "two", "True", placement.Claimed)
	mine := owned(t, "two")
	if len(mine) != 1 || mine[0].pair() != "pair-b" {
		t.Fatalf("two has %v, want one of pair-b", mine)
	}
	eventually(t, placementTime, "its API server there", func() error { return servedFrom(t, "two", mine[0].Name) })
	awaitHosted(t, "two")
	eventually(t, placementTime, "placeholders to leave pair-b", func() error {
		for _, p := range holders() {
			if p.node != "" {
				return fmt.Errorf("%s is on %s", p.name, p.node)
			}
		}
		return nil
	})
	everybodyInPlace(t, "after a pair came back")
}

func allGoes(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		run(t, placementTime, "hypershift", "destroy", "cluster", "none", "--name", name, outerFlag())
	}
	eventually(t, placementTime, "all nodes to be nobody's", func() error {
		if got := claims(t); len(got) > 0 {
			return fmt.Errorf("claims are %v", got)
		}
		for _, n := range forRequests(nodesSeen(t)) {
			if n.cluster() != "" || slices.ContainsFunc(n.taints, func(t corev1.Taint) bool { return t.Key == placement.ClusterLabel }) {
				return fmt.Errorf("%s has labels %v and taints %v", n.Name, n.Labels, n.taints)
			}
		}
		return nil
	})
	run(t, placementTime, "hypershift", "uninstall", "--yes", outerFlag())
	if out, err := outerKubectl().try(t, "get", "namespace", placement.Namespace, "-o", "jsonpath={.status.phase}"); err == nil && out != "Terminating" {
		t.Errorf("namespace %s is %s", placement.Namespace, out)
	}
}

// fits is what capacity says of small hosted clusters like one.
func fits(t *testing.T, like string) (small struct {
	Size, Lack string
	Count      int
}) {
	t.Helper()
	out := run(t, time.Minute, "hypershift", "capacity", "--like", like, "-o", "json", outerFlag())
	list := []struct {
		Size, Lack string
		Count      int
	}{}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("capacity says %s: %v", out, err)
	}
	for _, f := range list {
		if f.Size == "small" {
			t.Logf("capacity for one like %s: %d, %s", like, f.Count, f.Lack)
			return f
		}
	}
	t.Fatalf("capacity says nothing of size small: %s", out)
	return small
}
