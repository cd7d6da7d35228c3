//go:build bench

// Package rollout measures what a rollout over a thousand hosted clusters costs the controller.
//
// The API server is real and so is the controller, in a process of its own; hosted clusters are objects only, and the benchmark plays the
// package operator in their namespaces. What is measured of a step is said at the type steps.
package rollout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

const (
	namespace = "fleet"
	groups    = 10
	budget    = 50
	timeout   = 20 * time.Minute
	idleFor   = 30 * time.Second
)

// What the project wants.
const (
	targetStep   = 100 * time.Millisecond
	targetCPU    = 30.0 // seconds
	targetMemory = 200  // MiB
	targetIdle   = 1.0  // % of a core
)

// bench is a fleet, and the package operator as the benchmark plays it.
type bench struct {
	*testing.B
	c          client.WithWatch
	controller *exec.Cmd

	mean time.Duration // that a Package takes to come up

	mu      sync.Mutex
	started map[string]int64 // generation by namespace that was seen started
	steps   steps
	rolling bool        // the rollout has begun that is measured
	floor   []time.Time // when a watch showed changes without the controller
	image   string
	up      map[string]bool // namespaces whose Package is up on image
	writes  int             // of the controller, to Packages
}

// BenchmarkFleetRollout rolls a change out over HOSTED_CLUSTERS (1,000) hosted clusters, in 10 groups, 50 at a time. A Package takes PACKAGE_TIME (2 s)
// on average to come up; with 0s, all come up at once, and what is measured is what the API server can do.
func BenchmarkFleetRollout(b *testing.B) {
	n, mean := 1000, 2*time.Second
	if v, err := strconv.Atoi(os.Getenv("HOSTED_CLUSTERS")); err == nil && v > 0 {
		n = v
	}
	if v, err := time.ParseDuration(os.Getenv("PACKAGE_TIME")); err == nil && v >= 0 {
		mean = v
	}
	env := testenv.Start(b)
	crds, err := config.PackageOperatorCRDs()
	must(b, err)
	env.Install(b, crds...)
	x := &bench{B: b, c: env.Client(b, connect.Scheme()), mean: mean, started: map[string]int64{}, up: map[string]bool{}, image: "registry.example/addon:v1"}
	x.steps.group = map[string]int{}
	for i := range n {
		x.steps.group[namespace+"-"+name(i)] = i % groups
	}
	must(b, x.c.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	fmt.Printf("making %d hosted clusters\n", n)
	x.each(n, x.join)
	must(b, x.c.Create(b.Context(), owner(x.image)))
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	must(b, os.WriteFile(kubeconfig, env.Kubeconfig(b), 0o600))
	x.start(kubeconfig)
	go x.play()
	x.wait(n, "first installation")

	bare := x.bare(min(budget, n))
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

	slices.Sort(x.steps.single)
	first, last := x.steps.ofWaves()
	fmt.Printf("\n%d hosted clusters in %d groups, %d at a time, rolled out in %s; a Package takes %s\n\n", n, groups, budget, took.Round(time.Millisecond), mean)
	for _, row := range [][]string{
		{"figure", "measured", "target"},
		{"a slot is free → the next Package is changed, median", at(x.steps.single, 0.5).String(), ""},
		{"the same, 99th percentile", at(x.steps.single, 0.99).String(), "below " + targetStep.String()},
		{"a group may start → its first Package is changed, median", at(first, 0.5).String(), "below " + targetStep.String()},
		{fmt.Sprintf("the same, the last of up to %d", budget), at(last, 0.5).String(), ""},
		{"the same writes without the controller", bare.Round(100 * time.Microsecond).String(), ""},
		{"CPU of the controller for the rollout", fmt.Sprintf("%.1f s", used), fmt.Sprintf("below %.0f s", targetCPU)},
		{"memory of the controller, RSS", fmt.Sprintf("%d MiB", x.memory()), fmt.Sprintf("below %d MiB", targetMemory)},
		{"idle CPU, of one core", fmt.Sprintf("%.2f %%", idle), fmt.Sprintf("below %.0f %%", targetIdle)},
		{"writes to Packages while idle", strconv.Itoa(idleWrites), "0"},
		{"writes to Packages after one cluster's label changed", strconv.Itoa(x.writes - writes), "O(1)"},
		{"CPU for that", fmt.Sprintf("%.2f s", x.cpu()-relabel), ""},
	} {
		fmt.Printf("  %-58s %-14s %s\n", row[0], row[1], row[2])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(used, "cpu-s")
	b.ReportMetric(float64(at(x.steps.single, 0.99).Milliseconds()), "step-p99-ms")
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

func name(i int) string { return fmt.Sprintf("hc-%04d", i) }

func (x *bench) join(i int) error {
	ctx, name := x.Context(), name(i)
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

func (x *bench) change(image string) {
	x.Helper()
	x.mu.Lock()
	x.image, x.up, x.rolling = image, map[string]bool{}, true
	x.steps.begin(time.Now())
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
	x.until("the "+what, func() bool {
		x.mu.Lock()
		up := len(x.up)
		x.mu.Unlock()
		if up < n { // asking costs the API server something, too
			return false
		}
		p := &packagesv1.HostedClusterPackage{}
		err := x.c.Get(x.Context(), client.ObjectKey{Name: "addon"}, p)
		return err == nil && conditions.IsFalse(p.Status.Conditions, packagesv1.ConditionProgressing) && int(p.Status.UpdatedPackages) == n
	})
}

func (x *bench) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// bare is how long the API server takes for as many changes as there are in a wave, without a controller: from the first request until a watch
// has shown the last, the median of some.
func (x *bench) bare(n int) time.Duration {
	x.Helper()
	var out []time.Duration
	for round := range 6 {
		x.mu.Lock()
		x.floor = nil
		x.mu.Unlock()
		began := time.Now()
		x.each(n, func(i int) error {
			obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": fmt.Sprintf("registry.example/floor:v%d", round)}}}
			obj.SetGroupVersionKind(packagesv1.GroupVersion.WithKind("Package"))
			obj.SetNamespace(namespace + "-" + name(i))
			obj.SetName("floor")
			return x.c.Apply(x.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("package-operator"))
		})
		x.until("changes without the controller", func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return len(x.floor) == n
		})
		if round > 0 { // the first one makes them
			out = append(out, x.floor[n-1].Sub(began))
		}
	}
	slices.Sort(out)
	return at(out, 0.5)
}

func (x *bench) until(what string, done func() bool) {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			x.Fatalf("%s did not end", what)
		case <-ticker.C:
		}
	}
}
