//go:build bench

package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/configoperator"
	"hcp.internal/platform/internal/controlplane/cpo"
)

// fleetTimeout is for all hosted clusters to become available.
const fleetTimeout = 15 * time.Minute

// operatorSettle is how long operators get for their last writes before they count as idle.
const operatorSettle = 90 * time.Second

// small requests let more control planes on a node than it has processors for, as people do who pack development clusters.
// Requests reserve; they limit nothing.
var small = map[string]string{
	override("etcd"):                    "cpu=10m,memory=32Mi",
	override("kube-apiserver"):          "cpu=10m,memory=64Mi",
	override("kube-controller-manager"): "cpu=10m,memory=32Mi",
}

func override(component string) string {
	return hyperv1.ResourceRequestOverrideAnnotationPrefix + "/" + component + "." + component
}

// BenchmarkFleet creates many hosted clusters at once, and then looks at the operators while nothing happens.
func BenchmarkFleet(b *testing.B) {
	f := floor(b)
	c := local(b)
	var names []string
	for i := range fleet {
		names = append(names, numbered("fleet-", i))
	}
	took, used := c.createAll(b, names)
	lower := float64(fleet) * f.cpu / float64(runtime.NumCPU())

	fmt.Printf("fleet: all available after %s; letting operators settle for %s, then watching them for %s\n", seconds(took), operatorSettle, idle)
	pause(b, operatorSettle)
	operators := c.operators(b)
	busy, together := idleShare(b, operators)
	rss := residentSet(b, operators["hypershift-operator"])

	t := figures(fmt.Sprintf("%d hosted clusters at once, on %d cores", fleet, runtime.NumCPU()))
	t.compare("all applied → all Available; floor: its CPU seconds × clusters ÷ cores", took, lower, targetFleet, seconds)
	t.compare("CPU seconds of node, management cluster and all pods meanwhile, per hosted cluster", used/float64(fleet), f.cpu, 0, seconds)
	t.limit("memory of the hypershift-operator, RSS", mib(rss), fmt.Sprintf("%d MiB", targetOperator))
	for _, name := range []string{"hypershift-operator", cpo.Name, configoperator.Name} {
		t.limit(fmt.Sprintf("idle CPU of %d %s", len(operators[name]), name), percent(busy[name]), "")
	}
	t.limit("idle CPU of our operators together, of one core", percent(together), percent(targetIdle))
	t.print()
	report(b, map[string]float64{"all-available-s": took, "cpu-s/cluster": used / float64(fleet), "operator-rss-MiB": rss / mebi, "idle-cpu-percent": together})
}

// createAll returns how many seconds after the first HostedCluster was stored the last was available, and how many CPU seconds were used.
func (c *cluster) createAll(b *testing.B, names []string) (took, used float64) {
	b.Helper()
	c.destroyAtEnd(b, names...)
	ctx, cancel := context.WithTimeout(b.Context(), fleetTimeout)
	defer cancel()
	s := newStages(2*len(names) + 1)
	err := follow(ctx, c.api, &hyperv1.HostedClusterList{}, func(obj client.Object) {
		s.mark(stageApplied)
		if available(obj) {
			s.mark(obj.GetName())
		}
	}, client.InNamespace(namespace))
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("fleet: creating %d hosted clusters at once\n", len(names))
	before, err := cpuOfNode()
	whoBefore, lost := whoUsed()
	if err := errors.Join(err, lost); err != nil {
		b.Fatal(err)
	}
	if err := each(names, func(name string) error { return c.create(ctx, name, small) }); err != nil {
		b.Fatal(err)
	}
	missing := map[string]bool{}
	for _, name := range names {
		missing[name] = true
	}
	err = s.wait(ctx, func(stage string) bool {
		delete(missing, stage)
		return len(missing) == 0
	})
	if err != nil {
		late := make([]string, 0, len(missing))
		for name := range missing {
			late = append(late, name)
		}
		b.Fatalf("%d of %d hosted clusters are not available: %v\n%s", len(late), len(names), err, c.explain(late...))
	}
	after, err := cpuOfNode()
	whoAfter, lost := whoUsed()
	if err := errors.Join(err, lost); err != nil {
		b.Fatal(err)
	}
	printWhere("where CPU seconds went", whoBefore, whoAfter, after-before, float64(len(names)))
	var each []float64
	for _, name := range names {
		v, _ := s.since(stageApplied, name)
		each = append(each, v)
		took = max(took, v)
	}
	fmt.Printf("fleet: half of them are available after %s\n", seconds(median(each)))
	return took, after - before
}

// operators lists our own pods by operator.
func (c *cluster) operators(b *testing.B) map[string][]corev1.Pod {
	b.Helper()
	out := map[string][]corev1.Pod{
		"hypershift-operator": c.pods(b, client.InNamespace("hypershift"), client.MatchingLabels{"name": "operator"}),
	}
	for _, name := range []string{cpo.Name, configoperator.Name} {
		out[name] = c.pods(b, client.MatchingLabels{hyperv1.ControlPlaneComponentLabel: name})
	}
	for name, pods := range out {
		if len(pods) == 0 {
			b.Fatalf("no pod of %s runs", name)
		}
	}
	return out
}

// idleShare is which part of a core, in percent, each kind of operator uses while nothing happens, and all of them.
func idleShare(b *testing.B, operators map[string][]corev1.Pod) (map[string]float64, float64) {
	b.Helper()
	begin := time.Now()
	before := cpuOfPods(b, operators)
	pause(b, idle)
	after := cpuOfPods(b, operators)
	took := time.Since(begin).Seconds()
	shares, total := map[string]float64{}, 0.0
	for name := range operators {
		shares[name] = (after[name] - before[name]) / took * 100
		total += shares[name]
	}
	return shares, total
}

func cpuOfPods(b *testing.B, operators map[string][]corev1.Pod) map[string]float64 {
	b.Helper()
	used := map[string]float64{}
	for name, pods := range operators {
		for _, list := range processesIn(b, pods) {
			for _, p := range list {
				seconds, err := cpuOf(p.pid)
				if err != nil {
					b.Fatalf("reading the CPU time of %s: %v", name, err)
				}
				used[name] += seconds
			}
		}
	}
	return used
}

// residentSet is the memory of all processes of pods.
func residentSet(b *testing.B, pods []corev1.Pod) float64 {
	b.Helper()
	total := memory{}
	for _, list := range processesIn(b, pods) {
		for _, p := range list {
			m, err := memoryOf(p.pid)
			if err != nil {
				b.Fatalf("reading the memory of %s: %v", p.program, err)
			}
			total = total.plus(m)
		}
	}
	return total.rss
}
