//go:build e2e && live

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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
	joinByHand(t, k, w)

	client := awaitRequests(t, k, "kube-apiserver-client-kubelet")
	time.Sleep(undecided)
	if state := k.run(t, "get", "csr", client[0], "-o", "jsonpath={.status.conditions}"); state != "" {
		t.Fatalf("somebody decided on the request of a node that nobody knows: %s", state)
	}
	k.run(t, append([]string{"certificate", "approve"}, client...)...)
	k.run(t, append([]string{"certificate", "approve"}, awaitRequests(t, k, "kubelet-serving")...)...)
	podsReachAPI(t, k, chosenAddress)
}

// bootMachine starts a machine that belongs to nobody's NodePool: it has a container runtime and a kubelet that doesn't run.
func bootMachine(t *testing.T) kubectl {
	t.Helper()
	image := management().run(t, "get", "pods", "-n", demoNamespace, "-o", "jsonpath={.items[?(@.metadata.labels.infrastructure\\.hypershift\\.openshift\\.io/machine)].spec.containers[0].image}")
	if ref := os.Getenv("E2E_NODE_IMAGE"); ref != "" {
		image = ref
	}
	image = strings.Fields(image + " 10.244.0.1:5000/hypershift/node:1.36.3")[0]
	encode := func(text string) string {
		return "data:;base64," + base64.StdEncoding.EncodeToString([]byte(text))
	}
	ignition, err := json.Marshal(map[string]any{
		"ignition": map[string]any{"version": "3.2.0"},
		"storage": map[string]any{"files": []any{
			map[string]any{"path": "/etc/containerd/config.toml", "mode": 0o644, "overwrite": true, "contents": map[string]any{"source": encode(runtimeConfig)}},
			// What differs in a machine that is a container.
			map[string]any{"path": "/etc/kubernetes/kubelet.conf.d/10-nested.conf", "mode": 0o644, "contents": map[string]any{"source": encode(nestedKubelet)}},
		}},
		"systemd": map[string]any{"units": []any{map[string]any{"name": "containerd.service", "enabled": true, "contents": runtimeUnit}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	management().applyYAML(t, fmt.Sprintf(machineByHand, base64.StdEncoding.EncodeToString(ignition), image))
	eventually(t, 3*time.Minute, "a machine with a container runtime", func() error {
		out, err := management().try(t, "exec", "-n", "named", "mine", "--", "ctr", "version")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	return management()
}

// joinByHand does what docs/bring-your-own-nodes.md says.
func joinByHand(t *testing.T, k, w kubectl) {
	t.Helper()
	byAddress := k.run(t, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	server := "https://" + apiName + byAddress[strings.LastIndex(byAddress, ":"):]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bundle := exec.CommandContext(ctx, filepath.Join(root(t), "docs/examples/node-bundle.sh"))
	bundle.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "API_SERVER="+server, "PATH="+filepath.Join(root(t), "bin")+":"+os.Getenv("PATH"))
	bundle.Stderr = os.Stderr
	script, err := bundle.Output()
	if err != nil {
		t.Fatalf("node-bundle.sh: %v", err)
	}
	on := func(line string) string { return w.run(t, "exec", "-n", "named", "mine", "--", "bash", "-c", line) }
	on("echo " + base64.StdEncoding.EncodeToString(script) + " | base64 -d > /root/join.sh && bash /root/join.sh")
	on("mkdir -p /usr/local/bin && ln -sfn /usr/lib/kubelet/kubelet /usr/local/bin/kubelet")
	on(`start=$(sed -n 's/^ExecStart=//p' /etc/systemd/system/kubelet.service); . /run/metadata/machine
setsid nohup $start --hostname-override=mine --node-ip=$MACHINE_NODE_IP > /var/log/kubelet.log 2>&1 < /dev/null & disown`)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := w.try(t, "exec", "-n", "named", "mine", "--", "tail", "-n", "40", "/var/log/kubelet.log")
			t.Log(out)
		}
	})
}

// awaitRequests returns the names of pending certificate requests for a signer of Kubernetes.
func awaitRequests(t *testing.T, k kubectl, signer string) (names []string) {
	t.Helper()
	eventually(t, 2*time.Minute, "a request for "+signer, func() error {
		out, err := k.try(t, "get", "csr", "--field-selector", "spec.signerName=kubernetes.io/"+signer, "-o", "jsonpath={.items[*].metadata.name}")
		if names = strings.Fields(out); err != nil || len(names) == 0 {
			return fmt.Errorf("there is none (%w)", err)
		}
		return nil
	})
	return names
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

// machineByHand is what a LocalMachine would make, by hand.
const machineByHand = `
apiVersion: v1
kind: Secret
metadata: {name: mine, namespace: named}
data: {value: %s}
---
apiVersion: v1
kind: Pod
metadata: {name: mine, namespace: named}
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 10
  automountServiceAccountToken: false
  enableServiceLinks: false
  containers:
  - name: machine
    image: %s
    env:
    - {name: MACHINE_PROVIDER_ID, value: mine://named/mine}
    - {name: MACHINE_NODE_NAME, value: mine}
    - {name: MACHINE_NODE_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    securityContext: {privileged: true, runAsUser: 0}
    volumeMounts:
    - {name: disk, mountPath: /var}
    - {name: user-data, mountPath: /machine/user-data, readOnly: true}
  volumes:
  - {name: disk, emptyDir: {}}
  - {name: user-data, secret: {secretName: mine}}
`

const runtimeUnit = `[Unit]
Description=containerd

[Service]
Type=notify
ExecStart=/usr/bin/containerd --config /etc/containerd/config.toml
Restart=always

[Install]
WantedBy=multi-user.target
`

const runtimeConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "10.244.0.1:5000/hypershift/pause:local"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
`

const nestedKubelet = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
evictionHard: {memory.available: 100Mi, nodefs.available: 1Gi, imagefs.available: 1Gi}
imageGCHighThresholdPercent: 100
`
