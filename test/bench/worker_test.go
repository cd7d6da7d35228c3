//go:build bench

package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
)

const (
	// workerTimeout is for one worker to become Ready; it needs some seconds.
	workerTimeout = 5 * time.Minute
	// workersTimeout is for all workers of BenchmarkWorkers.
	workersTimeout = 15 * time.Minute
	// hostedName is the hosted cluster that workers join.
	hostedName = "workers"
)

// hostedCluster is a hosted cluster that workers can join.
type hostedCluster struct {
	*cluster
	name   string
	config *rest.Config
	own    client.WithWatch // of its API
	logs   kubernetes.Interface
}

// hosted creates a hosted cluster without workers, which ends with the benchmark.
func (c *cluster) hosted(b *testing.B) *hostedCluster {
	b.Helper()
	c.makeNamespace(b)
	c.createOne(b, hostedName)
	secret := &corev1.Secret{}
	if err := c.api.Get(b.Context(), client.ObjectKey{Namespace: namespace, Name: hostedName + "-admin-kubeconfig"}, secret); err != nil {
		b.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		b.Fatal(err)
	}
	own, err := client.NewWithWatch(config, client.Options{Scheme: connect.Scheme()})
	if err != nil {
		b.Fatal(err)
	}
	management, err := c.flags.RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	logs, err := kubernetes.NewForConfig(management)
	if err != nil {
		b.Fatal(err)
	}
	return &hostedCluster{cluster: c, name: hostedName, config: config, own: own, logs: logs}
}

// BenchmarkWorker adds one worker after the other, each beside a bare one, and prints how long each takes until its Node is Ready.
func BenchmarkWorker(b *testing.B) {
	c := local(b)
	h := c.hosted(b)
	bare := h.bareWorkers(b)
	var floors, workers []*stages
	var floorCPU, workerCPU []float64
	var floorMemory, workerMemory map[string]memory
	for i := range runs {
		fmt.Printf("worker: run %d of %d\n", i+1, runs)
		s, used, mem := bare.join(b, numbered("bare-", i))
		floors, floorCPU, floorMemory = append(floors, s), append(floorCPU, used), mem
		s, used, mem = h.join(b, numbered("pool-", i))
		workers, workerCPU, workerMemory = append(workers, s), append(workerCPU, used), mem
	}
	printStages("Stages of a bare worker, since its pod was stored", floors, bareOrder)
	printStages("Stages of a worker, since its NodePool was stored", workers, workerOrder)
	floorTotal := printMemory("Memory of a bare worker, "+settle.String()+" after it was Ready", floorMemory)
	total := printMemory("Memory of a worker, "+settle.String()+" after it was Ready", workerMemory)

	floor, took := medianStage(floors, bareOrder[0], stageReady), medianStage(workers, workerOrder[0], stageReady)
	t := figures(fmt.Sprintf("One worker (median of %d runs) beside a bare kubelet and containerd in the same kind of pod", runs))
	t.compare("NodePool stored → Node Ready; floor: pod stored → Node Ready", took, floor, targetWorker, seconds)
	t.compare("of it, since the worker's pod was stored", took-medianStage(workers, workerOrder[0], stagePod), floor, 0, seconds)
	t.compare("CPU seconds of node, management cluster and all pods meanwhile", median(workerCPU), median(floorCPU), 0, seconds)
	t.compare("memory, RSS of all its processes added", total.rss, floorTotal.rss, 0, mib)
	t.compare("memory, PSS (shared pages counted once)", total.pss, floorTotal.pss, 0, mib)
	t.print()
	report(b, map[string]float64{"ready-s": took, "floor-s": floor, "ratio": took / floor})
}

// join adds a worker and removes it. It returns the stages, the CPU seconds of everything until it was Ready, and the worker's memory.
func (h *hostedCluster) join(b *testing.B, pool string) (*stages, float64, map[string]memory) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), workerTimeout)
	defer cancel()
	s := newStages(100)
	if err := h.followWorker(ctx, pool, s); err != nil {
		b.Fatal(err)
	}
	before := busySoFar(b)
	np := h.createPool(b, pool, 1)
	if err := s.wait(ctx, func(stage string) bool { return stage == stageReady }); err != nil {
		b.Fatalf("no Ready worker after %s: %v\n%s", workerTimeout, err, h.explain(h.name))
	}
	used := busySoFar(b) - before
	pods := h.pods(b, client.InNamespace(controlPlane(h.name)))
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !strings.HasPrefix(p.Name, pool+"-") })
	if len(pods) != 1 {
		b.Fatalf("%d pods are workers of %s", len(pods), pool)
	}
	if err := h.readConsole(ctx, &pods[0], s); err != nil {
		b.Fatalf("reading the console of %s: %v", pods[0].Name, err)
	}
	pause(b, settle)
	mem := h.memoryByProgram(b, pods)
	h.deletePool(b, np)
	return s, used, mem
}

func (h *hostedCluster) createPool(b *testing.B, name string, replicas int32) *hyperv1.NodePool {
	b.Helper()
	hc := &hyperv1.HostedCluster{}
	if err := h.api.Get(b.Context(), client.ObjectKey{Namespace: namespace, Name: h.name}, hc); err != nil {
		b.Fatal(err)
	}
	o := create.NewNodePoolOptions(hyperv1.LocalPlatform)
	o.Namespace, o.Name, o.ClusterName, o.Replicas, o.ReleaseImage = namespace, name, h.name, replicas, hc.Spec.Release.Image
	np := create.NodePool(o)
	if err := h.api.Create(b.Context(), np); err != nil {
		b.Fatal(err)
	}
	return np
}

// deletePool returns when the pool is gone and with it its machines, so that nothing of one run is still ending during the next.
func (h *hostedCluster) deletePool(b *testing.B, np *hyperv1.NodePool) {
	b.Helper()
	if err := h.api.Delete(b.Context(), np); err != nil {
		b.Fatal(err)
	}
	for deadline := time.Now().Add(workerTimeout); ; pause(b, 200*time.Millisecond) {
		err := h.api.Get(b.Context(), client.ObjectKeyFromObject(np), np)
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil || time.Now().After(deadline) {
			b.Fatalf("NodePool %s does not go: %v", np.Name, err)
		}
	}
}

// memoryByProgram adds up the memory of processes by program, with what runs in pods of the workers.
func (h *hostedCluster) memoryByProgram(b *testing.B, pods []corev1.Pod) map[string]memory {
	b.Helper()
	used := map[string]memory{}
	for _, list := range processesIn(b, pods) {
		for _, p := range list {
			if m, err := memoryOf(p.pid); err == nil { // else it has ended meanwhile
				used["\t"+p.program] = used["\t"+p.program].plus(m)
			}
		}
	}
	return used
}

func busySoFar(b *testing.B) float64 {
	b.Helper()
	used, err := cpuOfNode()
	if err != nil {
		b.Fatal(err)
	}
	return used
}

// BenchmarkWorkers scales a pool from none to WORKERS at once, and prints what each costs.
func BenchmarkWorkers(b *testing.B) {
	c := local(b)
	h := c.hosted(b)
	np := h.createPool(b, "pool", 0)
	pause(b, settle)
	ctx, cancel := context.WithTimeout(b.Context(), workersTimeout)
	defer cancel()
	s := newStages(10 * workers)
	if err := h.followNodes(ctx, "pool", s); err != nil {
		b.Fatal(err)
	}
	before := busySoFar(b)
	s.mark(stagePool)
	if err := h.api.Patch(ctx, np, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, workers))); err != nil {
		b.Fatal(err)
	}
	ready := map[string]bool{}
	err := s.wait(ctx, func(stage string) bool {
		if name, ok := strings.CutPrefix(stage, stageReady+" "); ok {
			ready[name] = true
		}
		return len(ready) == workers
	})
	if err != nil {
		b.Fatalf("%d of %d workers are Ready after %s: %v\n%s", len(ready), workers, workersTimeout, err, h.explain(h.name))
	}
	used := busySoFar(b) - before
	var each []float64
	for name := range ready {
		v, _ := s.since(stagePool, stageReady+" "+name)
		each = append(each, v)
	}
	slices.Sort(each)
	pause(b, settle)
	pods := slices.DeleteFunc(h.pods(b, client.InNamespace(controlPlane(h.name))), func(p corev1.Pod) bool { return !ready[p.Name] })
	if len(pods) != workers {
		b.Errorf("%d workers are Ready and %d of their pods run", workers, len(pods))
	}
	byProgram := h.memoryByProgram(b, pods)
	for name, m := range byProgram {
		byProgram[name] = memory{rss: m.rss / float64(len(pods)), pss: m.pss / float64(len(pods))}
	}
	total := printMemory(fmt.Sprintf("Memory of each of %d workers on average, %s after all were Ready", workers, settle), byProgram)
	busy := busySoFar(b)
	pause(b, idle)
	busy = busySoFar(b) - busy

	t := figures(fmt.Sprintf("0 → %d workers on %d cores", workers, runtime.NumCPU()))
	t.limit("scaled → half of them Ready", seconds(median(each)), "")
	t.limit("scaled → all Ready", seconds(each[len(each)-1]), "")
	t.limit("CPU seconds of node, management cluster and all pods meanwhile, per worker", seconds(used/float64(workers)), "")
	t.limit("memory per worker, RSS", mib(total.rss), "")
	t.limit("memory per worker, PSS", mib(total.pss), "")
	t.limit(fmt.Sprintf("idle CPU of everything, with %d workers, of one core", workers), percent(100*busy/idle.Seconds()), "")
	t.print()
	report(b, map[string]float64{"all-ready-s": each[len(each)-1], "cpu-s/worker": used / float64(workers), "rss-MiB/worker": total.rss / mebi, "pss-MiB/worker": total.pss / mebi})
	h.deletePool(b, np)
}
