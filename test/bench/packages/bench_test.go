//go:build bench

package packages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const (
	// objectsEach is how many objects a deployment has.
	objectsEach = 5
	// idleTime is how long the operator is watched doing nothing.
	idleTime = 20 * time.Second
	// waitTime bounds how long one step may take; minutes are for the largest number on a busy machine.
	waitTime = 15 * time.Minute
)

// BenchmarkObjectDeployments prints what each number of deployments costs. More numbers: PACKAGES_BENCH_N=100,400,1600.
func BenchmarkObjectDeployments(b *testing.B) {
	numbers := "400"
	if n := os.Getenv("PACKAGES_BENCH_N"); n != "" {
		numbers = n
	}
	binary := build(b)
	for _, text := range strings.Split(numbers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("N=%d/objects=%d", n, objectsEach), func(b *testing.B) {
			for range b.N {
				measure(b, binary, n)
			}
		})
	}
}

// build makes the binary that is measured; PACKAGES_BENCH_BINARY is one to measure instead, to compare with.
func build(b *testing.B) string {
	b.Helper()
	if binary := os.Getenv("PACKAGES_BENCH_BINARY"); binary != "" {
		return binary
	}
	binary := filepath.Join(b.TempDir(), "hcp-operators")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "../../../cmd/hcp-operators")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("building hcp-operators: %v\n%s", err, out)
	}
	return binary
}

// operator is the process that is measured.
type operator struct {
	pid int
}

func startOperator(b *testing.B, w *packagestest.World, binary string) operator {
	b.Helper()
	dir := b.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, w.Env.Kubeconfig(b), 0o600); err != nil {
		b.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	args := []string{
		"package-operator-manager", "--kubeconfig", kubeconfig, "--namespace", "default", "--metrics-addr", "0",
		"--health-probe-bind-address", "0", "--enable-leader-election=false", "--log-level=-1",
	}
	if addr := os.Getenv("PACKAGES_BENCH_PPROF"); addr != "" {
		args = append(args, "--pprof-addr", addr)
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && len(text) > 0 {
			b.Logf("the operator said:\n%.4000s", text)
		}
	})
	return operator{pid: cmd.Process.Pid}
}

// cpu is the processor time used so far.
func (o operator) cpu(b *testing.B) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] { // user and system time, in hundredths of a second
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory reads a line of the process's status, in MiB.
func (o operator) memory(b *testing.B, name string) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	return 0
}

func measure(b *testing.B, binary string, n int) {
	w := packagestest.Serve(b)
	ns := w.Namespace(b)
	op := startOperator(b, w, binary)
	ctx, cancel := context.WithTimeout(b.Context(), waitTime)
	defer cancel()

	step := func(name string, do func()) {
		cpu, before, begin := op.cpu(b), countRequests(b, w.Env.Config), time.Now()
		do()
		took, used := time.Since(begin), op.cpu(b)-cpu
		requests := countRequests(b, w.Env.Config).since(before)
		b.Logf("%-8s %7.1f s  operator %6.1f CPU s (%.1f %% of a core), %3.0f MiB (anonymous %.0f, peak %3.0f), %d writes by all",
			name, took.Seconds(), used.Seconds(), 100*used.Seconds()/took.Seconds(), op.memory(b, "VmRSS"), op.memory(b, "RssAnon"), op.memory(b, "VmHWM"),
			requests.writes())
		b.Logf("%-8s requests by all, for each deployment: %s", name, requests.each(n))
		b.ReportMetric(took.Seconds(), name+"-s")
		b.ReportMetric(used.Seconds(), name+"-cpu-s")
	}
	step("create", func() {
		deployments(ctx, b, n, func(ctx context.Context, name string) error { return w.Client.Create(ctx, deployment(ns, name, "1")) })
		available(ctx, b, w, ns, n, 1)
	})
	step("settle", func() { time.Sleep(2 * time.Second) })
	step("idle", func() { time.Sleep(idleTime) })
	step("update", func() {
		deployments(ctx, b, n, func(ctx context.Context, name string) error {
			patch := client.MergeFrom(deployment(ns, name, "1"))
			return w.Client.Patch(ctx, deployment(ns, name, "2"), patch)
		})
		available(ctx, b, w, ns, n, 2)
	})
	step("settle", func() { archived(ctx, b, w, ns, n) })
	step("idle", func() { time.Sleep(idleTime) })
	b.ReportMetric(op.memory(b, "VmHWM"), "peak-MiB")
	step("delete", func() {
		deployments(ctx, b, n, func(ctx context.Context, name string) error {
			return w.Client.Delete(ctx, deployment(ns, name, ""), client.PropagationPolicy(metav1.DeletePropagationBackground))
		})
		gone(ctx, b, w, ns)
	})
}

func deployment(ns, name, value string) *v1alpha1.ObjectDeployment {
	var objects []v1alpha1.ObjectSetObject
	for i := range objectsEach {
		objects = append(objects, packagestest.ConfigMap(fmt.Sprintf("%s-%d", name, i), map[string]any{"value": value, "text": strings.Repeat("x", 200)}))
	}
	return packagestest.ObjectDeployment(ns, name, packagestest.Phase("all", objects...))
}

func deployments(ctx context.Context, b *testing.B, n int, do func(ctx context.Context, name string) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * runtime.NumCPU())
	for i := range n {
		group.Go(func() error { return do(ctx, fmt.Sprintf("d%04d", i)) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// available waits until n deployments report a revision as available.
func available(ctx context.Context, b *testing.B, w *packagestest.World, ns string, n int, revision int64) {
	b.Helper()
	ready := map[string]bool{}
	follow(ctx, b, w, ns, &v1alpha1.ObjectDeploymentList{}, func(obj client.Object) bool {
		od := obj.(*v1alpha1.ObjectDeployment)
		c := meta.FindStatusCondition(od.Status.Conditions, v1alpha1.ConditionAvailable)
		if od.Status.Revision == revision && c != nil && c.Message == "Latest Revision is Available." && c.ObservedGeneration == od.Generation {
			ready[od.Name] = true
		}
		return len(ready) == n
	})
}

func archived(ctx context.Context, b *testing.B, w *packagestest.World, ns string, n int) {
	b.Helper()
	done := map[string]bool{}
	follow(ctx, b, w, ns, &v1alpha1.ObjectSetList{}, func(obj client.Object) bool {
		os := obj.(*v1alpha1.ObjectSet)
		if meta.IsStatusConditionTrue(os.Status.Conditions, v1alpha1.ConditionArchived) {
			done[os.Name] = true
		}
		return len(done) == n
	})
}

// follow shows all objects of a kind, and each change, until done is content. An API server may end a watch at any time.
func follow(ctx context.Context, b *testing.B, w *packagestest.World, ns string, list client.ObjectList, done func(client.Object) bool) {
	b.Helper()
	for ctx.Err() == nil {
		watcher, err := w.Client.Watch(ctx, list, client.InNamespace(ns))
		if err != nil {
			b.Fatal(err)
		}
		for event := range watcher.ResultChan() {
			if obj, ok := event.Object.(client.Object); ok && done(obj) {
				watcher.Stop()
				return
			}
		}
	}
	b.Fatal(ctx.Err())
}

func gone(ctx context.Context, b *testing.B, w *packagestest.World, ns string) {
	b.Helper()
	for ctx.Err() == nil {
		left := 0
		for _, kind := range []string{"ObjectSet", "ConfigMap"} {
			list := &metav1.PartialObjectMetadataList{}
			gvk := v1alpha1.GroupVersion.WithKind(kind + "List")
			opts := []client.ListOption{client.InNamespace(ns)}
			if kind == "ConfigMap" {
				gvk.Group, gvk.Version = "", "v1"
				opts = append(opts, client.MatchingLabels{v1alpha1.CacheLabel: v1alpha1.CacheLabelValue})
			}
			list.SetGroupVersionKind(gvk)
			if err := w.Client.List(ctx, list, opts...); err != nil {
				b.Fatal(err)
			}
			left += len(list.Items)
		}
		if left == 0 {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	b.Fatal(ctx.Err())
}
