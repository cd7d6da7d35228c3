//go:build conformance

package conformance

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hcp.internal/platform/internal/testenv"
)

// custom are the specs of custom resources that need no pod, and those of what the proxy reads besides: watches, pages, tables, discovery.
const custom = `CustomResource(Definition|PublishOpenAPI)|FieldValidation|AggregatedDiscovery|\] Discovery|Watchers|API chunking should return|Table transformation|` +
	`Garbage collector should not be blocked|(Validating|Mutating)AdmissionPolicy.* API operations`

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestProxy(t *testing.T) {
	t.Run("When custom resources are asked for through the proxy of private types it should be what Kubernetes' suite wants to see", func(t *testing.T) {
		g := NewWithT(t)
		root, err := filepath.Abs("../..")
		g.Expect(err).NotTo(HaveOccurred())
		dir := t.TempDir()
		direct := filepath.Join(dir, "kubeconfig")
		env := testenv.Start(t)
		g.Expect(os.WriteFile(direct, env.Kubeconfig(t), 0o600)).To(Succeed())
		controllers(t, env, dir, direct)

		cases, err := Run(t.Context(), Options{
			Root: root, Kubeconfig: proxied(t, root, dir, direct), Focus: custom, Processes: 4, Timeout: 20 * time.Minute, Out: filepath.Join(dir, "out"), Log: t.Output(), NoNodes: true,
		})
		g.Expect(err).NotTo(HaveOccurred())
		passed, failed := 0, map[string]string{}
		for _, c := range cases {
			switch {
			case c.Failure != "":
				failed[c.Name] = c.Failure
			case c.Skipped == "":
				passed++
			}
		}
		g.Expect(failed).To(BeEmpty())
		g.Expect(passed).To(BeNumerically(">=", 30), "so many specs are of custom resources")
		t.Logf("%d specs passed", passed)
	})
}

// controllers starts those that the suite waits for in each namespace, and the one that empties it.
func controllers(t *testing.T, env *testenv.Env, dir, kubeconfig string) {
	t.Helper()
	g := NewWithT(t)
	ca := filepath.Join(dir, "ca.crt")
	g.Expect(os.WriteFile(ca, env.CA, 0o600)).To(Succeed())
	p, err := testenv.StartProcess(testenv.KubeBinary(t), dir, "kube-controller-manager", nil, "--kubeconfig="+kubeconfig, "--root-ca-file="+ca, "--leader-elect=false", "--secure-port=0",
		"--controllers=namespace-controller,garbage-collector-controller,serviceaccount-controller,root-ca-certificate-publisher-controller")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.Kill)
}

// proxied starts hypershift capi proxy and returns a kubeconfig of it.
func proxied(t *testing.T, root, dir, kubeconfig string) string {
	t.Helper()
	g := NewWithT(t)
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "hypershift"), "capi", "proxy", "--kubeconfig", kubeconfig, "--port", "0")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmd.Start()).To(Succeed())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	_, address, ok := strings.Cut(strings.TrimSpace(line), "Starting to serve on ")
	g.Expect(ok).To(BeTrue(), "hypershift capi proxy says %q", line)
	file := filepath.Join(dir, "proxied")
	g.Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: "http://" + address}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c"}},
		CurrentContext: "x",
	}, file)).To(Succeed())
	return file
}
