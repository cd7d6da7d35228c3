//go:build live

package browser

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/gomega"
)

// liveEnv is the kubeconfig of a management cluster that `hypershift local up` has started, with hosted cluster clusters/demo.
const liveEnv = "LIVE_KUBECONFIG"

// bin is where the programs of the repository are.
const bin = "../../bin"

// promised is how long the cause may take to be on the page.
const promised = 5 * time.Second

// kubectl works on the management cluster.
func kubectl(t *testing.T, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", os.Getenv(liveEnv), "--request-timeout=20s"}, args...)...).CombinedOutput()
	t.Logf("kubectl %s: %s %v", strings.Join(args, " "), strings.TrimSpace(string(out)), err)
	return strings.TrimSpace(string(out)), err
}

// liveConsole starts `hypershift console`, and gives the link that it prints.
func liveConsole(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "hypershift"), "console", "--kubeconfig", os.Getenv(liveEnv))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	link := regexp.MustCompile(`http://\S+#ticket=\w+`)
	for lines.Scan() {
		if found := link.FindString(lines.Text()); found != "" {
			go func() { // it says more, which nobody reads
				for lines.Scan() {
				}
			}()
			return found
		}
	}
	t.Fatal("hypershift console printed no link")
	return ""
}

// TestLiveEtcd breaks etcd of a real hosted cluster, and looks at its page.
//
//	LIVE_KUBECONFIG=$STATE/kubeconfig go test -tags live -run TestLiveEtcd -timeout 20m ./...
func TestLiveEtcd(t *testing.T) {
	if os.Getenv(liveEnv) == "" {
		t.Fatalf("set %s to the kubeconfig of a local management cluster", liveEnv)
	}
	g := NewWithT(t)
	link := liveConsole(t)
	base, _, _ := strings.Cut(link, "/#")
	b := open(t, &console{t: t, address: strings.TrimPrefix(base, "http://")})
	b.run(chromedp.Navigate(link), shown(".top nav"))
	b.visit("/hc/clusters/demo", ".title h1")
	well := func() {
		b.run(shown(".why.well"))
	}
	well()
	nodes, err := kubectl(t, "get", "nodes", "-o", "name")
	g.Expect(err).NotTo(HaveOccurred())
	each := func(verb string) {
		for _, n := range strings.Fields(nodes) {
			_, err := kubectl(t, verb, n)
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	t.Cleanup(func() { each("uncordon") })
	// No node takes it back.
	each("cordon")
	began := time.Now()
	_, err = kubectl(t, "delete", "pod", "-n", "clusters-demo", "etcd-0", "--grace-period=0", "--force", "--wait=false")
	g.Expect(err).NotTo(HaveOccurred())
	gone := time.Now()
	said := ""
	b.run(shown(".why:not(.well) h2"))
	for first := time.Now(); !strings.Contains(said, "etcd"); said = b.text(".why:not(.well) h2") {
		if time.Since(first) > patience {
			t.Fatalf("the page says %q", said)
		}
		time.Sleep(50 * time.Millisecond) // of a measurement
	}
	took := time.Since(gone)
	t.Logf("%s after etcd-0 was deleted (%s after that was asked for) the page says: %s", took.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond), said)
	b.shoot("_live-etcd")
	// Who noticed when: what is between the first of these times and the one above is ours.
	for _, kind := range []string{"hostedcontrolplane -n clusters-demo", "hostedcluster -n clusters"} {
		_, _ = kubectl(t, append([]string{"get"}, append(strings.Fields(kind), "demo", "-o", `jsonpath={range .status.conditions[*]}{.type}={.status} {.lastTransitionTime}{"; "}{end}`)...)...)
	}
	t.Logf("it was deleted at %s", gone.UTC().Format("15:04:05.000"))
	if took > promised { // told and no failure: how busy the machine is decides, too
		t.Logf("the cause took %s, and is to take %s at most on a machine of its own", took, promised)
	}
	g.Expect(b.complaints()).To(BeEmpty())
	each("uncordon")
	well()
	t.Log(fmt.Sprintf("all is well again %s later", time.Since(gone).Round(time.Second)))
}
