package hostedcontrolplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/release/releasetest"
	"hcp.internal/platform/internal/testenv"
)

// The test binary is its own control-plane-operator when these are set: a process has start-up costs that a test of the reconciler does not see.
const (
	envChild   = "COST_TEST_CHILD"   // folder to leave the counts of requests in
	envProfile = "COST_TEST_PROFILE" // file to leave a CPU profile in; set by hand
)

// requestCounter counts the requests of a client.
type requestCounter struct {
	next http.RoundTripper
	mu   *sync.Mutex
	n    map[string]int
}

// RoundTrip implements http.RoundTripper.
func (c requestCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := r.Method
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	c.mu.Lock()
	c.n[verb+" "+resourceOf(r.URL.Path)]++
	c.mu.Unlock()
	return c.next.RoundTrip(r)
}

// resourceOf drops the names from the path of a request.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if i := slices.Index(parts, "namespaces"); i >= 0 && len(parts) > i+2 {
		parts = parts[i+2:]
		if len(parts) > 1 {
			parts[1] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// child is the process, in place of the tests.
func child(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if path := os.Getenv(envProfile); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var o Options
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	o.readEnvironment()
	o.started, o.bootstrap = process.SpareTime(process.Settled), func(context.Context, []byte) error { return nil } // the hosted API has no name here
	cfg, err := process.Connect(ctx, o.Kubeconfig, "")
	if err != nil {
		return err
	}
	counter := requestCounter{mu: &sync.Mutex{}, n: map[string]int{}}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		c := counter
		c.next = next
		return c
	})
	err = Run(ctx, cfg, o)
	counter.mu.Lock()
	defer counter.mu.Unlock()
	counter.n["passes"] = passes()
	counts, jsonErr := json.Marshal(counter.n)
	return errors.Join(err, jsonErr, os.WriteFile(filepath.Join(dir, "requests"), counts, 0o600))
}

// passes of the controller in this process.
func passes() (n int) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0
	}
	for _, f := range families {
		if f.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range f.GetMetric() {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// hostedAPI answers for the hosted API server, as soon as there are certificates for it.
type hostedAPI struct {
	w    *world
	once sync.Once
	up   time.Time
}

func (h *hostedAPI) serve() {
	secret := &corev1.Secret{}
	if err := h.w.c.Get(h.w.t.Context(), client.ObjectKey{Namespace: h.w.hcp.Namespace, Name: pki.KASServer}, secret); err != nil {
		return
	}
	h.once.Do(func() {
		pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			h.w.t.Error(err)
			return
		}
		l, err := tls.Listen("tcp", net.JoinHostPort(h.w.address, "6443"), &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
		if err != nil {
			h.w.t.Error(err)
			return
		}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		go server.Serve(l)
		h.w.t.Cleanup(func() { _ = server.Close() })
		h.up = time.Now()
	})
}

// playSlowly moves workloads through the states that the controllers report, and lets pods be ready after some time.
func (w *world) playSlowly(ready time.Duration) {
	ctx, ns := w.t.Context(), client.InNamespace(w.hcp.Namespace)
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	var deployments appsv1.DeploymentList
	must(w.c.List(ctx, &deployments, ns))
	for i := range deployments.Items {
		d := &deployments.Items[i]
		n := ptr.Deref(d.Spec.Replicas, 1)
		s := &d.Status
		switch {
		case s.ObservedGeneration != d.Generation:
			s.ObservedGeneration, s.UnavailableReplicas = d.Generation, n
			s.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetCreated"}}
		case s.UpdatedReplicas != n:
			s.Replicas, s.UpdatedReplicas = n, n
		case len(s.Conditions) == 1:
			s.Conditions = append(s.Conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse})
		case s.AvailableReplicas != n && time.Since(d.CreationTimestamp.Time) > ready:
			s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas = n, n, 0
			s.Conditions[1].Status = corev1.ConditionTrue
		case s.AvailableReplicas == n && s.Conditions[0].Reason != "NewReplicaSetAvailable":
			s.Conditions[0].Reason = "NewReplicaSetAvailable"
		default:
			continue
		}
		must(client.IgnoreNotFound(w.c.Status().Update(ctx, d)))
	}
	var sets appsv1.StatefulSetList
	must(w.c.List(ctx, &sets, ns))
	for i := range sets.Items {
		s := &sets.Items[i]
		n := ptr.Deref(s.Spec.Replicas, 1)
		switch {
		case s.Status.ObservedGeneration != s.Generation:
			s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: n}
		case s.Status.UpdatedReplicas != n:
			s.Status.UpdatedReplicas, s.Status.CurrentReplicas = n, n
		case s.Status.ReadyReplicas != n && time.Since(s.CreationTimestamp.Time) > ready:
			s.Status.ReadyReplicas, s.Status.AvailableReplicas = n, n
		default:
			continue
		}
		must(client.IgnoreNotFound(w.c.Status().Update(ctx, s)))
	}
	var services corev1.ServiceList
	must(w.c.List(ctx, &services, ns))
	for i := range services.Items {
		if svc := &services.Items[i]; svc.Spec.Type == corev1.ServiceTypeLoadBalancer && len(svc.Status.LoadBalancer.Ingress) == 0 {
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: w.address}}
			must(w.c.Status().Update(ctx, svc))
		}
	}
}

// explain says what the components wait for.
func (w *world) explain() string {
	var reports hyperv1.ControlPlaneComponentList
	if err := w.c.List(w.t.Context(), &reports, client.InNamespace(w.hcp.Namespace)); err != nil {
		return err.Error()
	}
	out := ""
	for _, r := range reports.Items {
		for _, c := range r.Status.Conditions {
			if c.Status != metav1.ConditionTrue {
				out += fmt.Sprintf("%s: %s: %s: %s\n", r.Name, c.Type, c.Reason, c.Message)
			}
		}
	}
	return out
}

// serverSeconds is the processor time that the management API server has taken so far.
func serverSeconds(t testing.TB, env *testenv.Env) float64 {
	t.Helper()
	c, err := rest.HTTPClientFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Get(env.Config.Host + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`).FindSubmatch(body.Bytes())
	if m == nil {
		t.Fatal("the API server does not count its processor time")
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// BenchmarkCreation prints what the process takes from its start until its control plane is available and at rest: its processor time, its requests,
// and the processor time of the management API server meanwhile, with that of the test's own reads in it.
func BenchmarkCreation(b *testing.B) {
	g := NewWithT(b)
	reg := releasetest.New(b)
	image := reg.PushRelease(b, "1.36.3", reg.KubernetesTags())
	w := newWorld(b, func(h *hyperv1.HostedControlPlane) { h.Spec.ReleaseImage = image })
	w.address = "127.53.0.1"
	dir := b.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, w.env.Kubeconfig(b), 0o600)).To(Succeed())
	before := serverSeconds(b, w.env)

	process := exec.CommandContext(b.Context(), os.Args[0], "--namespace", w.hcp.Namespace, "--kubeconfig", kubeconfig, "--metrics-addr", "127.0.0.1:0", "--health-probe-addr", "127.0.0.1:0")
	process.Env = append(os.Environ(), envChild+"="+dir, "CONTROL_PLANE_OPERATOR_IMAGE=own:1", "POD_NAME=cpo-1", "DEFAULT_SECURITY_CONTEXT_UID=1001",
		"MANAGEMENT_CLUSTER_NODES=1", "MANAGEMENT_CLUSTER_ZONES=1", "MANAGEMENT_CLUSTER_NATIVE_SIDECARS=true")
	var log bytes.Buffer
	process.Stderr, process.Stdout = &log, &log
	g.Expect(process.Start()).To(Succeed())
	began := time.Now()
	api := &hostedAPI{w: w}
	g.Eventually(func() bool {
		api.serve()
		w.playSlowly(2 * time.Second)
		return meta.IsStatusConditionTrue(w.read().Status.Conditions, string(hyperv1.HostedControlPlaneAvailable))
	}).WithTimeout(time.Minute).WithPolling(100*time.Millisecond).Should(BeTrue(), func() string { return w.explain() + log.String() })
	available := time.Since(began)
	settled := time.Now()
	for time.Since(settled) < 6*time.Second {
		w.playSlowly(2 * time.Second)
		time.Sleep(200 * time.Millisecond)
	}
	after := serverSeconds(b, w.env)
	g.Expect(process.Process.Signal(syscall.SIGTERM)).To(Succeed())
	if err := process.Wait(); err != nil {
		b.Fatalf("%v\n%s", err, log.String())
	}
	raw, err := os.ReadFile(filepath.Join(dir, "requests"))
	g.Expect(err).NotTo(HaveOccurred())
	counts := map[string]int{}
	g.Expect(json.Unmarshal(raw, &counts)).To(Succeed())
	b.ReportMetric(float64(counts["passes"]), "passes")
	delete(counts, "passes")
	total := 0
	for _, key := range slices.SortedFunc(maps.Keys(counts), func(x, y string) int { return counts[y] - counts[x] }) {
		fmt.Printf("%5d %s\n", counts[key], key)
		total += counts[key]
	}
	usage := process.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(total), "requests")
	b.ReportMetric(cpu.Seconds()*1000, "cpu-ms")
	b.ReportMetric((after-before)*1000, "server-ms")
	b.ReportMetric(available.Seconds(), "available-s")
	b.ReportMetric(float64(usage.Maxrss)/1024, "max-rss-MiB")
}
