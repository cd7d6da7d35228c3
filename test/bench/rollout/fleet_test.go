//go:build bench

// Package rollout measures what a rollout over a thousand hosted clusters costs the controller.
//
// The API server is real and so is the controller, in a process of its own; hosted clusters are objects only, and the benchmark plays the
// package operator in their namespaces.
package rollout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/hostedclusterpackage"
	packagemanager "hcp.internal/platform/internal/packages/manager"
	"hcp.internal/platform/internal/testenv"
)

const (
	controllerEnv = "BENCH_CONTROLLER_KUBECONFIG" // makes this program the controller
	namespace     = "fleet"
	groups        = 10
	budget        = 50
	timeout       = 20 * time.Minute
	idleFor       = 30 * time.Second
)

// What the project wants.
const (
	targetStep   = 100 * time.Millisecond
	targetCPU    = 30.0 // seconds
	targetMemory = 200  // MiB
	targetIdle   = 1.0  // % of a core
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if path := os.Getenv(controllerEnv); path != "" {
		if err := control(ctrl.SetupSignalHandler(), path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testenv.Main(m))
}

// control is the controller's process: its caches as the package operator sets them up, and no other controller.
func control(ctx context.Context, kubeconfig string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: connect.Scheme(), Cache: packagemanager.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	r := &hostedclusterpackage.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: namespace, Clock: clock.RealClock{},
		Events: &events.FakeRecorder{}}
	if err := r.SetupWithManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// bench is a fleet, and the package operator as the benchmark plays it.
type bench struct {
	*testing.B
	c          client.WithWatch
	controller *exec.Cmd

	mu      sync.Mutex
	started map[string]int64 // generation by namespace that was seen started
	freed   []time.Time      // slots that nobody has taken yet
	steps   []time.Duration
	image   string
	up      map[string]bool // namespaces whose Package is up on image
	writes  int             // of the controller, to Packages
}

// BenchmarkFleetRollout rolls a change out over HOSTED_CLUSTERS (1,000) hosted clusters, in 10 groups, 50 at a time.
func BenchmarkFleetRollout(b *testing.B) {
	n := 1000
	if v, err := strconv.Atoi(os.Getenv("HOSTED_CLUSTERS")); err == nil && v > 0 {
		n = v
	}
	env := testenv.Start(b)
	crds, err := config.PackageOperatorCRDs()
	must(b, err)
	_, err = envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: crds, MaxTime: time.Minute})
	must(b, err)
	x := &bench{B: b, c: env.Client(b, connect.Scheme()), started: map[string]int64{}, up: map[string]bool{}, image: "registry.example/addon:v1"}
	must(b, x.c.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	fmt.Printf("making %d hosted clusters\n", n)
	x.each(n, x.join)
	must(b, x.c.Create(b.Context(), owner(x.image)))
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	must(b, os.WriteFile(kubeconfig, env.Kubeconfig(b), 0o600))
	x.start(kubeconfig)
	go x.play()
	x.wait(n, "first installation")

	cpu, began := x.cpu(), time.Now()
	x.change("registry.example/addon:v2")
	x.wait(n, "rollout")
	took, used := time.Since(began), x.cpu()-cpu
	quiet, writes := x.cpu(), x.writes
	x.pause(idleFor)
	idle := (x.cpu() - quiet) / idleFor.Seconds() * 100
	idleWrites := x.writes - writes
	relabel, writes := x.cpu(), x.writes
	x.relabel("hc-0001")
	x.pause(5 * time.Second)

	slices.Sort(x.steps)
	fmt.Printf("\n%d hosted clusters in %d groups, %d at a time, rolled out in %s\n\n", n, groups, budget, took.Round(time.Millisecond))
	for _, row := range [][]string{
		{"figure", "measured", "target"},
		{"a slot is free → the next Package is changed, median", x.at(0.5).String(), ""},
		{"the same, 99th percentile", x.at(0.99).String(), "below " + targetStep.String()},
		{"CPU of the controller for the rollout", fmt.Sprintf("%.1f s", used), fmt.Sprintf("below %.0f s", targetCPU)},
		{"memory of the controller, RSS", fmt.Sprintf("%d MiB", x.memory()), fmt.Sprintf("below %d MiB", targetMemory)},
		{"idle CPU, of one core", fmt.Sprintf("%.2f %%", idle), fmt.Sprintf("below %.0f %%", targetIdle)},
		{"writes to Packages while idle", strconv.Itoa(idleWrites), "0"},
		{"writes to Packages after one cluster's label changed", strconv.Itoa(x.writes - writes), "O(1)"},
		{"CPU for that", fmt.Sprintf("%.2f s", x.cpu()-relabel), ""},
	} {
		fmt.Printf("  %-55s %-14s %s\n", row[0], row[1], row[2])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(used, "cpu-s")
	b.ReportMetric(float64(x.at(0.99).Milliseconds()), "step-p99-ms")
	b.ReportMetric(idle, "idle-cpu-percent")
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func owner(image string) *packagesv1.HostedClusterPackage {
	return &packagesv1.HostedClusterPackage{
		ObjectMeta: metav1.ObjectMeta{Name: "addon"},
		Spec: packagesv1.HostedClusterPackageSpec{
			Strategy:  packagesv1.HostedClusterPackageStrategy{RollingUpgrade: &packagesv1.HostedClusterPackageStrategyRollingUpgrade{MaxUnavailable: budget}},
			Partition: &packagesv1.HostedClusterPackagePartitionSpec{LabelKey: "risk"},
			Template:  packagesv1.PackageTemplateSpec{Spec: packagesv1.PackageSpec{Image: image}},
		},
	}
}

// each runs do for numbers below n, some at a time.
func (x *bench) each(n int, do func(i int) error) {
	x.Helper()
	var wg sync.WaitGroup
	errs := make(chan error, n)
	slots := make(chan struct{}, 16)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs <- do(i)
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must(x.B, err)
	}
}

func (x *bench) join(i int) error {
	ctx, name := x.Context(), fmt.Sprintf("hc-%04d", i)
	hc := testenv.HostedCluster(namespace, name)
	hc.Labels = map[string]string{"risk": fmt.Sprintf("group-%d", i%groups)}
	if err := x.c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}}); err != nil {
		return err
	}
	if err := x.c.Create(ctx, hc); err != nil {
		return err
	}
	before := hc.DeepCopy()
	conditions.Set(&hc.Status.Conditions, time.Now(), metav1.Condition{Type: string(hyperv1.HostedClusterAvailable), Status: metav1.ConditionTrue, Reason: "AsExpected"})
	return x.c.Status().Patch(ctx, hc, client.MergeFrom(before))
}

func (x *bench) start(kubeconfig string) {
	x.Helper()
	self, err := os.Executable()
	must(x.B, err)
	x.controller = exec.Command(self)
	x.controller.Env = append(os.Environ(), controllerEnv+"="+kubeconfig)
	x.controller.Stderr = os.Stderr
	must(x.B, x.controller.Start())
	x.Cleanup(func() {
		_ = x.controller.Process.Signal(os.Interrupt)
		_ = x.controller.Wait()
	})
}

// play lets every Package that was changed become available at once, so that all the time there is is the controller's.
func (x *bench) play() {
	ctx := x.Context()
	work := make(chan *packagesv1.Package, 5000)
	for range 8 {
		go func() {
			for p := range work {
				x.settle(ctx, p)
			}
		}()
	}
	defer close(work)
	// A busy API server ends watches; the next one begins with everything that there is.
	for ctx.Err() == nil {
		w, err := x.c.Watch(ctx, &packagesv1.PackageList{})
		if err != nil {
			x.pause(time.Second)
			continue
		}
		for event := range w.ResultChan() {
			if p, ok := event.Object.(*packagesv1.Package); ok && x.begins(p) {
				work <- p
			}
		}
		w.Stop()
	}
}

// begins notes a Package that the controller has made or changed.
func (x *bench) begins(p *packagesv1.Package) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.started[p.Namespace] >= p.Generation {
		return false
	}
	x.started[p.Namespace] = p.Generation
	x.writes++
	if len(x.freed) > 0 {
		x.steps = append(x.steps, time.Since(x.freed[0]))
		x.freed = x.freed[1:]
	}
	return true
}

func (x *bench) settle(ctx context.Context, p *packagesv1.Package) {
	before := p.DeepCopy()
	conditions.Set(&p.Status.Conditions, time.Now(),
		metav1.Condition{Type: packagesv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Bench", ObservedGeneration: p.Generation},
		metav1.Condition{Type: packagesv1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "Bench", ObservedGeneration: p.Generation},
		metav1.Condition{Type: packagesv1.ConditionUnpacked, Status: metav1.ConditionTrue, Reason: "Bench", ObservedGeneration: p.Generation})
	if err := x.c.Status().Patch(ctx, p, client.MergeFrom(before)); err != nil {
		if ctx.Err() == nil {
			x.Errorf("settling %s: %v", p.Namespace, err)
		}
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if p.Spec.Image == x.image {
		x.up[p.Namespace] = true
		x.freed = append(x.freed, time.Now())
	}
}

func (x *bench) change(image string) {
	x.Helper()
	x.mu.Lock()
	x.image, x.up, x.freed, x.steps = image, map[string]bool{}, nil, nil
	x.mu.Unlock()
	p := owner(image)
	must(x.B, x.c.Patch(x.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"spec":{"image":"`+image+`"}}}}`))))
}

func (x *bench) relabel(name string) {
	x.Helper()
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	must(x.B, x.c.Patch(x.Context(), hc, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"risk":"group-9"}}}`))))
}

// wait until all are up and the status says so.
func (x *bench) wait(n int, what string) {
	x.Helper()
	fmt.Printf("waiting for the %s\n", what)
	ctx, cancel := context.WithTimeout(x.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		p := &packagesv1.HostedClusterPackage{}
		err := x.c.Get(ctx, client.ObjectKey{Name: "addon"}, p)
		x.mu.Lock()
		up := len(x.up)
		x.mu.Unlock()
		if err == nil && up == n && conditions.IsFalse(p.Status.Conditions, packagesv1.ConditionProgressing) && int(p.Status.UpdatedPackages) == n {
			return
		}
		select {
		case <-ctx.Done():
			x.Fatalf("the %s did not end: %d of %d are up, %v", what, up, n, err)
		case <-ticker.C:
		}
	}
}

func (x *bench) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func (x *bench) at(q float64) time.Duration {
	if len(x.steps) == 0 {
		return 0
	}
	return x.steps[min(len(x.steps)-1, int(q*float64(len(x.steps))))].Round(100 * time.Microsecond)
}

// cpu is what the controller has used, in seconds; clock ticks are 1/100 s on Linux.
func (x *bench) cpu() float64 {
	x.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", x.controller.Process.Pid))
	must(x.B, err)
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	must(x.B, err)
	system, err := strconv.ParseFloat(fields[12], 64)
	must(x.B, err)
	return (user + system) / 100
}

// memory is the resident set of the controller in MiB.
func (x *bench) memory() int {
	x.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", x.controller.Process.Pid))
	must(x.B, err)
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	must(x.B, err)
	return pages * os.Getpagesize() >> 20
}
