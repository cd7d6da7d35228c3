package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"hcp.internal/platform/internal/testenv"
)

// kubectlFor is kubectl, and a kubeconfig for each view.
func kubectlFor(t *testing.T, both []view) (kubectl string, kubeconfigs map[string]string) {
	t.Helper()
	kubectl = filepath.Join(filepath.Dir(testenv.KubeBinary(t)), "..", "..", "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		t.Fatalf("no kubectl at %s: run `make kubernetes` first", kubectl) // a skipped test would hide the gap
	}
	kubeconfigs = map[string]string{}
	for _, v := range both {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := clientcmd.WriteToFile(*kubeconfigOf(v.cfg), file); err != nil {
			t.Fatal(err)
		}
		kubeconfigs[v.name] = file
	}
	return kubectl, kubeconfigs
}

// TestKubectlWatch follows a Cluster with kubectl from before it is there until it is gone.
func TestKubectlWatch(t *testing.T) {
	g := NewWithT(t)
	both := views(t)
	kubectl, files := kubectlFor(t, both)
	lines := map[string][]string{}
	for _, v := range both {
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, kubectl, "--kubeconfig", files[v.name], "-n", v.ns, "--cache-dir", filepath.Join(t.TempDir(), v.name),
			"get", "clusters.cluster.x-k8s.io", "--watch", "--output-watch-events", "--no-headers", "--show-labels")
		out, err := cmd.StdoutPipe()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cmd.Start()).To(Succeed())
		scanner := bufio.NewScanner(out)
		cluster := strings.Replace(clusterBody, `,"finalizers":["cluster.cluster.x-k8s.io"]`, "", 1)
		for _, r := range []request{
			{"POST", capi + "clusters", jsonType, cluster, ""},
			{"PATCH", capi + "clusters/c", mergeType, `{"metadata":{"labels":{"seen":"yes"}}}`, ""},
			{"DELETE", capi + "clusters/c", "", "", ""},
		} {
			code, _, body := v.do(t, r)
			g.Expect(code).To(BeNumerically("<", 300), body)
			g.Expect(scanner.Scan()).To(BeTrue(), "an event of each change: %v", scanner.Err())
			lines[v.name] = append(lines[v.name], strings.Join(strings.Fields(v.normal(scanner.Text())), " "))
		}
		stop()
		_ = cmd.Wait() // it was killed
	}
	g.Expect(lines["direct"]).To(HaveLen(3))
	g.Expect(lines["direct"][1]).To(And(HavePrefix("MODIFIED c "), ContainSubstring("seen=yes")))
	g.Expect(lines["proxied"]).To(Equal(lines["direct"]))
}

// TestKubectl gives kubectl the same orders both ways. What it prints must be the same.
func TestKubectl(t *testing.T) {
	both := views(t)
	kubectl, files := kubectlFor(t, both)
	run := func(v view, stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), kubectl, append([]string{"--kubeconfig", files[v.name], "-n", v.ns, "--cache-dir", filepath.Join(t.TempDir(), v.name)}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "KUBE_EDITOR=sed -i s/watch-filter/watched-by/")
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
		{"", "edit", "clusters.cluster.x-k8s.io", "c"},
		{"", "get", "clusters.cluster.x-k8s.io", "c", "-o", "jsonpath={.metadata.labels}"},
		{"", "patch", "clusters.cluster.x-k8s.io", "c", "--type=strategic", "-p", `{"metadata":{"labels":{"a":"b"}}}`},
		{"", "patch", "clusters.cluster.x-k8s.io", "c", "--type=json", "-p", `[{"op":"test","path":"/spec/infrastructureRef/apiGroup","value":"infrastructure.cluster.x-k8s.io"},{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`},
		{"", "patch", "clusters.cluster.x-k8s.io", "c", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Provisioned"}}`},
		{"", "explain", "clusters.cluster.x-k8s.io", "--recursive"},
		{"", "explain", "nonsense.cluster.x-k8s.io"},
		{"", "explain", "machines.spec.infrastructureRef", "--api-version=cluster.x-k8s.io/v1beta2", "--output=plaintext-openapiv2"},
		{"", "create", "role", "r", "--verb=get", "--resource=machines.cluster.x-k8s.io/status", "-o", "yaml", "--dry-run=server"},
		{"", "get", "cluster-api", "-o", "name"},
		{"", "api-resources", "--categories=cluster-api", "--api-group=cluster.x-k8s.io", "-o", "wide"},
		{"", "auth", "can-i", "delete", "machines.cluster.x-k8s.io/status", "--as=nobody"},
		{"", "auth", "can-i", "--list", "--as=nobody"},
		{"", "get", "crd", "none.cluster.x-k8s.io"},
		{"", "get", "--raw", "/apis/cluster.x-k8s.io"},
		{"", "events"},
		{"", "wait", "--for=jsonpath={.spec.replicas}=2", "machinesets.cluster.x-k8s.io/s", "--timeout=2m"},
		{"", "wait", "--for=condition=Paused", "clusters.cluster.x-k8s.io/c", "--timeout=1s"},
		{"", "wait", "--for=delete", "clusters.cluster.x-k8s.io/none"},
		{"", "scale", "machinesets.cluster.x-k8s.io/s", "--current-replicas=7", "--replicas=8"},
		{"", "delete", "machinesets.cluster.x-k8s.io", "--all"},
		{"", "delete", "clusters.cluster.x-k8s.io", "c"},
		{"", "get", "clusters.cluster.x-k8s.io", "c"},
	} {
		direct, proxied := run(both[0], step[0], step[1:]...), run(both[1], step[0], step[1:]...)
		if diff := cmp.Diff(strings.Split(direct, "\n"), strings.Split(proxied, "\n")); diff != "" {
			t.Errorf("kubectl %v, - direct, + proxied:\n%s", step[1:], diff) // every step that differs is told, not only the first
		}
	}
}
