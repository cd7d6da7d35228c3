package command_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/console/consoletest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// programsEnv names builds of hcp-operators to measure, as NAME=PATH with commas between them, so that one run compares them.
const programsEnv = "CONSOLE_PROGRAMS"

const (
	benchClusters = 1000
	benchViewers  = 20
	settle        = 20 * time.Second
	idle          = 60 * time.Second
)

// BenchmarkProcess measures the console of a cluster as a process of its own, with 1,000 hosted clusters and three NodePools each on a real API server: its
// memory when its lists are complete, after a while, and with viewers; the processor that it needs when nothing happens; and watches per kind.
//
//	CGO_ENABLED=0 go build -trimpath -o bin/hcp-operators ./cmd/hcp-operators
//	CONSOLE_PROGRAMS=now=$PWD/bin/hcp-operators go test -run '^$' -bench Process -benchtime 1x -timeout 30m ./internal/console/command
func BenchmarkProcess(b *testing.B) {
	programs := os.Getenv(programsEnv)
	if programs == "" {
		b.Fatalf("set %s to NAME=PATH of hcp-operators", programsEnv)
	}
	env := testenv.Start(b)
	c := env.Client(b, consoletest.Scheme())
	began := time.Now()
	consoletest.Many(b, env.Config, c, benchClusters, 3)
	b.Logf("%d hosted clusters were made in %s", benchClusters, time.Since(began).Round(time.Second))
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.Kubeconfig(b), 0o600); err != nil {
		b.Fatal(err)
	}
	token := viewer(b, c)
	for _, p := range strings.Split(programs, ",") {
		name, path, _ := strings.Cut(p, "=")
		b.Run(name, func(b *testing.B) { process(b, env.Config, path, kubeconfig, token) })
	}
}

// viewer is somebody who may read all, and their token.
func viewer(b *testing.B, c client.Client) string {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "console-viewer"}}
	request := &authenticationv1.TokenRequest{}
	role := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "console-viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: sa.Name}}}
	for _, do := range []func() error{func() error { return c.Create(b.Context(), sa) }, func() error { return c.Create(b.Context(), role) }, func() error { return c.SubResource("token").Create(b.Context(), sa, request) }} {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	return request.Status.Token
}

func process(b *testing.B, config *rest.Config, path, kubeconfig, token string) {
	ports, err := testenv.FreePorts(1)
	if err != nil {
		b.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	for b.Loop() {
		before := watches(b, config)
		cmd := exec.Command(path, "console", "--addr", address)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		end := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		b.Cleanup(end)
		for deadline := time.Now().Add(3 * time.Minute); !ready(b.Context(), "http://"+address+"/readyz"); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				b.Fatal("the console is not ready")
			}
		}
		tell(b, "ready", cmd.Process.Pid)
		time.Sleep(settle)
		tell(b, "rest", cmd.Process.Pid)
		used := cpu(b, cmd.Process.Pid)
		time.Sleep(idle)
		b.ReportMetric(100*(cpu(b, cmd.Process.Pid)-used)/idle.Seconds(), "%core-rest")
		ctx, cancel := context.WithCancel(b.Context())
		var wait sync.WaitGroup
		for i := range benchViewers {
			wait.Go(func() { look(ctx, "http://"+address, token, i < 8) })
		}
		time.Sleep(settle)
		tell(b, "viewers", cmd.Process.Pid)
		after := watches(b, config)
		for _, kind := range []string{"hostedclusters", "nodepools", "packages", "hostedclusterpackages"} {
			b.ReportMetric(after[kind]-before[kind], "watches-"+kind)
		}
		cancel()
		wait.Wait()
		end()
	}
}

// look reads the fleet again and again, and follows it if there is a stream for it.
func look(ctx context.Context, base, token string, stream bool) {
	ask := func(path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return http.DefaultClient.Do(r)
	}
	drain := func(r *http.Response, err error) {
		if err == nil {
			_, _ = bufio.NewReader(r.Body).WriteTo(discard{})
			_ = r.Body.Close()
		}
	}
	if stream {
		drain(ask("/api/v1/stream?topic=fleet&show=all"))
		return
	}
	for ctx.Err() == nil {
		drain(ask("/api/v1/fleet?show=all"))
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func ready(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// tell reports the memory of a process: what it has made itself, and the pages of its program that were read in.
func tell(b *testing.B, when string, pid int) {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"RssAnon", "RssFile"} {
		m := regexp.MustCompile(kind + `:\s+(\d+) kB`).FindSubmatch(raw)
		if m == nil {
			b.Fatalf("no %s in %s", kind, raw)
		}
		kb, _ := strconv.ParseFloat(string(m[1]), 64)
		b.ReportMetric(kb/1024, "MiB-"+strings.TrimPrefix(kind, "Rss")+"-"+when)
	}
}

// cpu is the time of a processor that a process has used, in seconds.
func cpu(b *testing.B, pid int) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // ticks, the same on all architectures that Go runs on
}

// watches are those that the API server has open, by resource.
func watches(b *testing.B, config *rest.Config) map[string]float64 {
	b.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, config.Host+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	resource := regexp.MustCompile(`^apiserver_longrunning_requests\{.*resource="(\w+)".*verb="WATCH".*\} (\S+)$`)
	for lines.Scan() {
		if m := resource.FindStringSubmatch(lines.Text()); m != nil {
			n, _ := strconv.ParseFloat(m[2], 64)
			out[m[1]] += n
		}
	}
	return out
}
