//go:build e2e && sizes

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/placement"
)

// seenNode is a node of the management cluster as anybody sees it.
type seenNode struct {
	metav1.ObjectMeta
	taints  []corev1.Taint
	ready   bool
	address string
}

func (n seenNode) forRequests() bool { return n.Labels[hyperv1.RequestServingComponentLabel] == "true" }
func (n seenNode) pair() string      { return n.Labels[hyperv1.PairedNodesLabel] }
func (n seenNode) zone() string      { return n.Labels[corev1.LabelTopologyZone] }

// cluster is the namespace of the control plane whose node it is; empty: nobody's.
func (n seenNode) cluster() string { return n.Labels[placement.ClusterLabel] }

func (n seenNode) String() string {
	return fmt.Sprintf("%s (%s, %s, of %q)", n.Name, n.pair(), n.zone(), n.cluster())
}

// nodesSeen are all nodes, by name.
func nodesSeen(t *testing.T) (nodes []seenNode) {
	t.Helper()
	list := corev1.NodeList{}
	if err := json.Unmarshal([]byte(outerKubectl().run(t, "get", "nodes", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		seen := seenNode{ObjectMeta: n.ObjectMeta, taints: n.Spec.Taints}
		for _, c := range n.Status.Conditions {
			seen.ready = seen.ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				seen.address = a.Address
			}
		}
		nodes = append(nodes, seen)
	}
	return nodes
}

func forRequests(nodes []seenNode) []seenNode {
	return slices.DeleteFunc(slices.Clone(nodes), func(n seenNode) bool { return !n.forRequests() })
}

// owned are the nodes of a hosted cluster.
func owned(t *testing.T, name string) []seenNode {
	t.Helper()
	return slices.DeleteFunc(nodesSeen(t), func(n seenNode) bool { return n.cluster() != "clusters-"+name })
}

// unowned are the ready nodes of a pair that are nobody's.
func unowned(t *testing.T, pair string) []seenNode {
	t.Helper()
	return slices.DeleteFunc(nodesSeen(t), func(n seenNode) bool { return n.pair() != pair || n.cluster() != "" || !n.ready })
}

func ofZone(t *testing.T, nodes []seenNode, zone string) seenNode {
	t.Helper()
	i := slices.IndexFunc(nodes, func(n seenNode) bool { return n.zone() == zone })
	if i < 0 {
		t.Fatalf("none of %v is in zone %s", nodes, zone)
	}
	return nodes[i]
}

func owns(t *testing.T, name, node string) error {
	got := owned(t, name)
	if !slices.ContainsFunc(got, func(n seenNode) bool { return n.Name == node }) {
		return fmt.Errorf("%s has %v", name, got)
	}
	return nil
}

// claims are the pairs that hosted clusters have.
func claims(t *testing.T) []string {
	t.Helper()
	return strings.Fields(outerKubectl().run(t, "get", "configmaps", "-n", placement.Namespace, "-l", "hypershift.openshift.io/pairlabel", "-o", "jsonpath={.items[*].metadata.name}"))
}

// seenPod is a pod that has not ended.
type seenPod struct {
	name, node, component string
	// isolated: it serves requests, and wants a node of its cluster, if that has any.
	isolated, running, ready bool
}

func podsIn(t *testing.T, namespace string) (pods []seenPod) {
	t.Helper()
	list := corev1.PodList{}
	if err := json.Unmarshal([]byte(outerKubectl().run(t, "get", "pods", "-n", namespace, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil {
			continue
		}
		seen := seenPod{name: p.Name, node: p.Spec.NodeName, component: p.Labels["hypershift.openshift.io/control-plane-component"],
			isolated: p.Labels[hyperv1.RequestServingComponentLabel] == "true", running: p.Status.Phase == corev1.PodRunning}
		for _, c := range p.Status.Conditions {
			seen.ready = seen.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		pods = append(pods, seen)
	}
	return pods
}

func apiServers(t *testing.T, name string) []seenPod {
	t.Helper()
	return slices.DeleteFunc(podsIn(t, "clusters-"+name), func(p seenPod) bool { return p.component != "kube-apiserver" })
}

// servedFrom is nil when a ready API server is on the node, and none but ready ones on nodes of the cluster.
func servedFrom(t *testing.T, name, node string) error {
	pods := apiServers(t, name)
	found := false
	for _, p := range pods {
		if !p.ready {
			return fmt.Errorf("API servers are %+v", pods)
		}
		found = found || p.node == node
	}
	if !found {
		return fmt.Errorf("none is on %s: %+v", node, pods)
	}
	return nil
}

// everybodyInPlace looks at every pod of control planes and of the operator: who serves requests of a cluster with nodes of its own is on these, one of a kind
// on each, and nobody else is on any node for requests; no pair has two clusters.
func everybodyInPlace(t *testing.T, when string) {
	t.Helper()
	of, pairs, has := map[string]seenNode{}, map[string]string{}, map[string]bool{}
	for _, n := range nodesSeen(t) {
		of[n.Name] = n
		if other := pairs[n.pair()]; n.cluster() != "" && other != "" && other != n.cluster() {
			t.Errorf("%s: pair %s has nodes of %s and of %s", when, n.pair(), other, n.cluster())
		}
		if n.cluster() != "" {
			pairs[n.pair()], has[n.cluster()] = n.cluster(), true
		}
	}
	namespaces := strings.Fields(outerKubectl().run(t, "get", "namespaces", "-o", "jsonpath={.items[*].metadata.name}"))
	for _, ns := range namespaces {
		if ns != "hypershift" && !strings.HasPrefix(ns, "clusters-") {
			continue
		}
		where, taken := []string{}, map[string]string{}
		for _, p := range podsIn(t, ns) {
			if p.node == "" {
				continue
			}
			n := of[p.node]
			where = append(where, p.name+"@"+n.Name)
			if home := p.isolated && has[ns]; home && n.cluster() != ns || !home && n.forRequests() {
				t.Errorf("%s: pod %s/%s is on %s", when, ns, p.name, n)
			}
			if key := p.component + "@" + p.node; p.isolated && taken[key] != "" {
				t.Errorf("%s: %s and %s of %s are both on %s", when, taken[key], p.name, ns, p.node)
			} else {
				taken[key] = p.name
			}
		}
		t.Logf("%s: %s: %s", when, ns, strings.Join(where, " "))
	}
}

func conditionIn(t *testing.T, name, kind string) (c conditionOf) {
	t.Helper()
	out, err := outerKubectl().try(t, "get", "hostedcluster", "-n", "clusters", name, "-o", fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)]}`, kind))
	if err != nil || strings.TrimSpace(out) == "" {
		return c
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("condition %s of %s: %v: %s", kind, name, err, out)
	}
	return c
}

func awaitNodesReady(t *testing.T, name, status, reason string) {
	t.Helper()
	eventually(t, placementTime, fmt.Sprintf("nodes of %s to be %s", name, reason), func() error {
		if c := conditionIn(t, name, hyperv1.RequestServingNodesReady); c.Status != status || c.Reason != reason {
			return fmt.Errorf("it is %s, %s: %s", c.Status, c.Reason, c.Message)
		}
		return nil
	})
}

func awaitHosted(t *testing.T, name string) {
	t.Helper()
	eventually(t, placementTime, "hosted cluster "+name, func() error {
		for kind, want := range map[string]string{"Available": "True", "Progressing": "False"} {
			if c := conditionIn(t, name, kind); c.Status != want {
				return fmt.Errorf("%s is %s: %s: %s", kind, c.Status, c.Reason, c.Message)
			}
		}
		return nil
	})
}

// hostedIn writes the kubeconfig of a hosted cluster of another management cluster into the state folder.
func hostedIn(t *testing.T, flag, name string) {
	t.Helper()
	content := run(t, time.Minute, "hypershift", "create", "kubeconfig", "--name", name, flag)
	if err := os.WriteFile(filepath.Join(stateDir, name+".kubeconfig"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// callers call a hosted API all the time: one on connections that it keeps, and one on a new connection each time. A call may take as long as the longest silence
// that is allowed, so that a busy machine makes none fail.
type callers struct {
	kept, newcomer *caller
	endpoints      *endpointsSeen
}

func callsTo(t *testing.T, name string) callers {
	t.Helper()
	config, address := credentials(t, name)
	host, _, _ := strings.Cut(address, ":")
	client := clientFor(config, host, false)
	client.Timeout = longestSilence
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel, kinds: map[string]*figures{}}
	t.Cleanup(c.stop)
	c.loop(ctx, "new connection", func(ctx context.Context, _ int) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/api/v1/namespaces/kube-system", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			err = errors.Join(err, errors.New(resp.Status))
		}
		return err
	})
	content, err := os.ReadFile(filepath.Join(stateDir, name+".kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := callBy(t, content, longestSilence)
	return callers{kept: kept, newcomer: c, endpoints: followEndpoints(t, "clusters-"+name)}
}

// endpointsSeen are the endpoints that the Service of kube-apiserver had, with times: which of their changes a failed call coincides with tells what sent it where
// nobody was.
type endpointsSeen struct {
	mu    sync.Mutex
	lines []string
}

// followEndpoints notes every change until the test is over.
func followEndpoints(t *testing.T, namespace string) *endpointsSeen {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", outerKubectl().kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.DiscoveryV1().EndpointSlices(namespace).Watch(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kube-apiserver"})
	if err != nil {
		t.Fatal(err)
	}
	seen := &endpointsSeen{}
	var done sync.WaitGroup
	done.Go(func() {
		for e := range w.ResultChan() {
			slice, ok := e.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				continue
			}
			line := fmt.Sprintf("%s %s %s:", time.Now().Format("15:04:05.000"), e.Type, slice.Name)
			for _, at := range slice.Endpoints {
				c := at.Conditions
				line += fmt.Sprintf(" %s on %s (ready %t, serving %t, ends %t)", strings.Join(at.Addresses, " "), ptr.Deref(at.NodeName, ""), ptr.Deref(c.Ready, false), ptr.Deref(c.Serving, false), ptr.Deref(c.Terminating, false))
			}
			seen.mu.Lock()
			seen.lines = append(seen.lines, line)
			seen.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		w.Stop()
		done.Wait()
	})
	return seen
}

// report ends the calls, notes what was found, and fails when one had no answer for longer than allowed.
func (c callers) report(t *testing.T, during string, allowed time.Duration) {
	t.Helper()
	for _, one := range []*caller{c.kept, c.newcomer} {
		one.expectSilence(t, during, allowed)
		for kind, f := range one.kinds {
			findings = append(findings, fmt.Sprintf("while %s: %s: %d calls, %d failed, longest time without an answer %s", during, kind, f.calls, f.failures, f.silence.Round(100*time.Millisecond)))
		}
	}
}

// expectNoneFailed fails for each kind of call of which one failed.
func (c callers) expectNoneFailed(t *testing.T) {
	t.Helper()
	for _, one := range []*caller{c.kept, c.newcomer} {
		for kind, f := range one.kinds {
			if f.failures > 0 {
				t.Errorf("%d of %d calls, %s, failed, and none may", f.failures, f.calls, kind)
			}
		}
	}
	if t.Failed() {
		c.endpoints.mu.Lock()
		defer c.endpoints.mu.Unlock()
		t.Logf("the Service of kube-apiserver had these endpoints:\n%s", strings.Join(c.endpoints.lines, "\n"))
	}
}
