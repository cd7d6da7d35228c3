//go:build e2e && live

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
	// apiName is a DNS name that the management cluster's DNS knows, and through it every machine whose resolver that is.
	apiName = "api.named.svc.cluster.local"
	// chosenAddress is advertised where a test asks for an address of its own; without that it is usualAddress.
	chosenAddress, usualAddress = "172.20.7.7", "172.20.0.1"
	// undecided is how long requests of unknown nodes are watched: long enough for several passes of an approver.
	undecided = 20 * time.Second
)

// byOwn is the hosted cluster of platform None whose node a person brings, and workersByName that of platform Local.
const byOwn, workersByName = "byown", "named"

// TestLiveNames makes hosted clusters whose API is published under a name, beside what runs: one whose only node is a kubelet that is
// started by hand, and one with a worker.
func TestLiveNames(t *testing.T) {
	node := management().run(t, "get", "nodes", "-o", "jsonpath={.items[0].status.addresses[?(@.type=='InternalIP')].address}")
	management().applyYAML(t, fmt.Sprintf(apiRecord, node))
	t.Cleanup(func() { _, _ = management().try(t, "delete", "namespace", "named", "--wait=false") })
	t.Run("When a person brings a node to platform None it should join, once a person approves", func(t *testing.T) { bringNode(t, node) })
	t.Run("When a worker of platform Local has an API with a name its pods should reach it", func(t *testing.T) { workerByName(t, node) })
}

// apiRecord makes apiName a name for the node of the management cluster.
const apiRecord = `
apiVersion: v1
kind: Namespace
metadata: {name: named}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: named}
spec: {clusterIP: None}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: api, namespace: named, labels: {kubernetes.io/service-name: api}}
addressType: IPv4
endpoints: [{addresses: [%s], conditions: {ready: true}}]
`

// releaseOfUp is the reference of the release that up built.
func releaseOfUp() string {
	if ref := os.Getenv("E2E_RELEASE"); ref != "" {
		return ref
	}
	return "10.244.0.1:5000/hypershift/release:1.36.3"
}

// reachByAddress makes a kubeconfig for this computer, whose resolver doesn't know apiName: it calls the address, and checks the name.
func reachByAddress(t *testing.T, name, node string) kubectl {
	t.Helper()
	k := hostedKubectl(t, name)
	server := run(t, time.Minute, "kubectl", "--kubeconfig", k.kubeconfig, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].name} {.clusters[0].cluster.server}")
	cluster, url, _ := strings.Cut(strings.TrimSpace(server), " ")
	if !strings.Contains(url, apiName) {
		t.Fatalf("the API is published at %s, want %s", url, apiName)
	}
	run(t, time.Minute, "kubectl", "--kubeconfig", k.kubeconfig, "config", "set-cluster", cluster,
		"--server="+strings.Replace(url, apiName, node, 1), "--tls-server-name="+apiName)
	return k
}

func bringNode(t *testing.T, node string) {
	t.Cleanup(func() {
		run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "none", "--name", byOwn, kubeconfigFlag())
	})
	manifest, pullSecret := filepath.Join(t.TempDir(), "cluster.yaml"), filepath.Join(t.TempDir(), "pull-secret.json")
	if err := os.WriteFile(pullSecret, []byte(`{"auths":{"registry.example.com":{"auth":"bm9ib2R5Om5vdGhpbmc="}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, time.Minute, "hypershift", "create", "cluster", "none", "--name", byOwn, "--release-image", releaseOfUp(), "--external-api-server-address", apiName, "--pull-secret", pullSecret,
		"--network-type", "Other", "--disable-multi-network", "--allocate-node-cidrs", "--node-pool-replicas=-1", kubeconfigFlag(), "--render", "--render-sensitive", "--render-into", manifest)
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	// There is no flag for this field.
	management().applyYAML(t, strings.Replace(string(content), "\n  networking:\n", "\n  networking:\n    apiServer: {advertiseAddress: "+chosenAddress+"}\n", 1))
	eventually(t, 5*time.Minute, "the hosted cluster", func() error {
		got, err := management().try(t, "get", "hostedcluster", "-n", "clusters", byOwn, "-o", "jsonpath={.status.conditions[?(@.type=='Available')].status}")
		if err != nil || got != "True" {
			return fmt.Errorf("Available is %q (%w)", got, err)
		}
		return nil
	})
	k := reachByAddress(t, byOwn, node)
	w := bootMachine(t)
	byAddress := k.run(t, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	joinByHand(t, k, w, "https://"+apiName+byAddress[strings.LastIndex(byAddress, ":"):])

	client := awaitRequests(t, k, "kube-apiserver-client-kubelet")
	time.Sleep(undecided)
	if state := k.run(t, "get", "csr", client[0], "-o", "jsonpath={.status.conditions}"); state != "" {
		t.Fatalf("somebody decided on the request of a node that nobody knows: %s", state)
	}
	k.run(t, append([]string{"certificate", "approve"}, client...)...)
	k.run(t, append([]string{"certificate", "approve"}, awaitRequests(t, k, "kubelet-serving")...)...)
	podsReachAPI(t, k, chosenAddress)
}

func workerByName(t *testing.T, node string) {
	t.Cleanup(func() {
		run(t, 5*time.Minute, "hypershift", "destroy", "cluster", "local", "--name", workersByName, kubeconfigFlag())
	})
	run(t, 10*time.Minute, "hypershift", "create", "cluster", "local", "--name", workersByName, "--release-image", releaseOfUp(), "--external-api-server-address", apiName,
		"--node-pool-replicas", "1", kubeconfigFlag(), "--wait", "--timeout", "9m")
	podsReachAPI(t, reachByAddress(t, workersByName, node), usualAddress)
}

// podsReachAPI expects that a cluster's node is ready, that a pod gets an answer of kubernetes.default whose certificate is right, and
// that logs and exec work.
func podsReachAPI(t *testing.T, k kubectl, address string) {
	t.Helper()
	eventually(t, 4*time.Minute, "a ready node", func() error {
		got, err := k.try(t, "get", "nodes", "-o", "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}")
		if err != nil || got != "True" {
			return fmt.Errorf("Ready is %q (%w)", got, err)
		}
		return nil
	})
	if got := k.run(t, "get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[0].addresses[0].ip}"); !strings.HasSuffix(got, address) {
		t.Errorf("Service kubernetes points to %s, want %s", got, address)
	}
	eventually(t, 4*time.Minute, "DNS, whose pods read the API by kubernetes.default", func() error {
		got, err := k.try(t, "get", "deployment", "-n", "kube-system", "coredns", "-o", "jsonpath={.status.availableReplicas}")
		if err != nil || got == "" || got == "0" {
			return fmt.Errorf("%q replicas are available (%w)", got, err)
		}
		return nil
	})
	k.run(t, "apply", "-f", filepath.Join(root(t), "docs/examples/webapp.yaml"))
	k.run(t, "set", "env", "deployment/webapp", "SSL_CERT_FILE=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
	eventually(t, appStart, "an answer of the API to a pod", func() error {
		out, err := k.try(t, "exec", "deployment/webapp", "--", "/webapp", "get", "https://kubernetes.default.svc/version")
		if err != nil || !strings.Contains(out, "gitVersion") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	eventually(t, appStart, "exec and logs", func() error { return throughTunnel(t, k) })
	proxyFollowsProxy(t, k)
}

// proxyFollowsProxy replaces the node's proxy while a pod calls the API through it.
func proxyFollowsProxy(t *testing.T, k kubectl) {
	t.Helper()
	k.applyYAML(t, callerPod)
	figures := func() (line string) {
		out, err := k.try(t, "logs", "caller", "--tail=20")
		if lines := strings.Split(strings.TrimSpace(out), "\n"); err == nil {
			line = lines[len(lines)-1]
		}
		return line
	}
	eventually(t, appStart, "a pod that calls", func() error {
		if line := figures(); !strings.HasSuffix(line, ", 0 failed") {
			return fmt.Errorf("it says %q", line)
		}
		return nil
	})
	k.run(t, "rollout", "restart", "-n", "kube-system", "daemonset/kube-apiserver-proxy")
	eventually(t, 2*time.Minute, "a new proxy", func() error {
		out, err := k.try(t, "rollout", "status", "-n", "kube-system", "daemonset/kube-apiserver-proxy", "--watch=false")
		if err != nil || !strings.Contains(out, "successfully rolled out") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	time.Sleep(undecided) // until the old one is gone, and some calls more
	line := figures()
	t.Logf("while the proxy was replaced: %s", line)
	if !strings.HasSuffix(line, ", 0 failed") {
		t.Errorf("calls failed: %s", line)
	}
}

// callerPod calls the API all the time, each time by a new connection.
const callerPod = `
apiVersion: v1
kind: Pod
metadata: {name: caller, namespace: default}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: caller
    image: 10.244.0.1:5000/hypershift/webapp:1.0.0
    command: [/webapp, poll, "https://kubernetes.default.svc/version"]
    env: [{name: SSL_CERT_FILE, value: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}]
`
