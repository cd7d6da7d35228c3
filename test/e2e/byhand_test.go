//go:build e2e && (install || live)

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

const demoNamespace = "clusters-demo"

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

// joinByHand does what docs/bring-your-own-nodes.md says, with an API at server.
func joinByHand(t *testing.T, k, w kubectl, server string) {
	t.Helper()
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
