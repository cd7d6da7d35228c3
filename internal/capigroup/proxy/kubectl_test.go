package proxy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"hcp.internal/platform/internal/testenv"
)

// TestKubectl gives kubectl the same orders both ways. What it prints must be the same.
func TestKubectl(t *testing.T) {
	kubectl := filepath.Join(filepath.Dir(testenv.KubeBinary(t)), "..", "..", "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		t.Fatalf("no kubectl at %s: run `make kubernetes` first", kubectl) // a skipped test would hide the gap
	}
	both := views(t)
	files := map[string]string{}
	for _, v := range both {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := clientcmd.WriteToFile(*kubeconfigOf(v.cfg), file); err != nil {
			t.Fatal(err)
		}
		files[v.name] = file
	}
	run := func(v view, stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), kubectl, append([]string{"--kubeconfig", files[v.name], "-n", v.ns, "--cache-dir", filepath.Join(t.TempDir(), v.name)}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return v.normal(strings.ReplaceAll(fmt.Sprintf("%s%v", out.String(), err), v.cfg.Host, "HOST"))
	}
	cluster := strings.NewReplacer(`,"finalizers":["cluster.cluster.x-k8s.io"]`, "").Replace(clusterBody)
	for _, step := range [][]string{
		{cluster, "apply", "-f", "-"},
		{strings.Replace(cluster, `"c"},"`, `"c","x":"y"},"`, 1), "apply", "-f", "-"},
		// Another object than that above: the API server itself would write into the annotation last-applied-configuration, in the names that
		// it stores.
		{strings.Replace(cluster, `"name":"c"`, `"name":"ssa"`, 1), "apply", "--server-side", "-f", "-"},
		{strings.Replace(cluster, `"name":"c","labels"`, `"name":"ssa","annotations":{"x":"y"},"labels"`, 1), "apply", "--server-side", "--field-manager=other", "-f", "-"},
		{"", "get", "clusters.cluster.x-k8s.io", "ssa", "-o", "yaml", "--show-managed-fields"},
		{"", "get", "clusters.cluster.x-k8s.io"},
		{"", "get", "clusters.cluster.x-k8s.io", "c", "-o", "yaml"},
		{"", "get", "cl.cluster.x-k8s.io", "-o", "name"},
		{"", "describe", "clusters.cluster.x-k8s.io", "c"},
		{"", "get", "clusters.cluster.x-k8s.io", "c", "-o", "wide", "--show-labels", "--show-kind"},
		{"", "get", "clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io", "-o", "json"},
		{"", "get", "clusters.cluster.x-k8s.io", "nothing"},
		{"", "get", "nonsense.cluster.x-k8s.io"},
		{cluster, "diff", "-f", "-"},
		{"", "patch", "clusters.cluster.x-k8s.io", "c", "--type=merge", "-p", `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`},
		{script[8].body, "create", "-f", "-"},
		{"", "scale", "machinesets.cluster.x-k8s.io/s", "--replicas=2"},
		{"", "get", "machinesets.cluster.x-k8s.io", "s", "-o", "jsonpath={.spec.replicas}"},
		{"", "explain", "machines.spec.infrastructureRef", "--api-version=cluster.x-k8s.io/v1beta2"},
		{"", "api-resources", "--api-group=cluster.x-k8s.io"},
		{"", "api-resources", "--api-group=infrastructure.cluster.x-k8s.io"},
		{"", "auth", "can-i", "get", "machines.cluster.x-k8s.io"},
		{"", "get", "crd", "machines.cluster.x-k8s.io", "-o", "name"},
		{"", "annotate", "clusters.cluster.x-k8s.io", "c", "cluster.x-k8s.io/paused-"},
		{"", "label", "clusters.cluster.x-k8s.io", "c", "cluster.x-k8s.io/watch-filter=x"},
		{"", "patch", "clusters.cluster.x-k8s.io", "c", "--type=json", "-p", `[{"op":"test","path":"/spec/infrastructureRef/apiGroup","value":"infrastructure.cluster.x-k8s.io"},{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`},
		{"", "patch", "clusters.cluster.x-k8s.io", "c", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Provisioned"}}`},
		{"", "explain", "clusters.cluster.x-k8s.io", "--recursive"},
		{"", "explain", "nonsense.cluster.x-k8s.io"},
		{"", "api-resources", "--categories=cluster-api", "--api-group=cluster.x-k8s.io", "-o", "wide"},
		{"", "auth", "can-i", "delete", "machines.cluster.x-k8s.io/status", "--as=nobody"},
		{"", "auth", "can-i", "--list", "--as=nobody"},
		{"", "get", "crd", "none.cluster.x-k8s.io"},
		{"", "get", "--raw", "/apis/cluster.x-k8s.io"},
		{"", "events"},
		{"", "wait", "--for=jsonpath={.spec.replicas}=2", "machinesets.cluster.x-k8s.io/s", "--timeout=5s"},
		{"", "delete", "machinesets.cluster.x-k8s.io", "s"},
		{"", "delete", "clusters.cluster.x-k8s.io", "c"},
		{"", "get", "clusters.cluster.x-k8s.io", "c"},
	} {
		direct, proxied := run(both[0], step[0], step[1:]...), run(both[1], step[0], step[1:]...)
		if diff := cmp.Diff(strings.Split(direct, "\n"), strings.Split(proxied, "\n")); diff != "" {
			t.Errorf("kubectl %v, - direct, + proxied:\n%s", step[1:], diff) // every step that differs is told, not only the first
		}
	}
}
