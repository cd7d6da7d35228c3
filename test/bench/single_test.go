//go:build bench

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/local/quiet"
)

// singleTimeout is for one hosted cluster to become available; it needs some ten seconds.
const singleTimeout = 5 * time.Minute

// BenchmarkSingle creates one hosted cluster after the other and prints how long each takes, and what the last one occupies.
func BenchmarkSingle(b *testing.B) {
	f := floor(b)
	c := local(b)
	var all, ends []*stages
	var used map[string]memory
	var busy, asked []float64
	var clients []quiet.Requests
	var resting map[string]float64
	var where func()
	for i := range runs {
		fmt.Printf("single: run %d of %d\n", i+1, runs)
		name := numbered("single-", i)
		before, err := cpuOfNode()
		whoBefore, lost := whoUsed()
		if err := errors.Join(err, lost); err != nil {
			b.Fatal(err)
		}
		s := c.createOne(b, name)
		after, err := cpuOfNode()
		whoAfter, lost := whoUsed()
		if err := errors.Join(err, lost); err != nil {
			b.Fatal(err)
		}
		where = func() {
			printWhere("Where CPU seconds went until Available, in the last run", whoBefore, whoAfter, after-before, 1)
		}
		all = append(all, s)
		var requests float64
		clients, requests = c.requestsUntilAvailable(b, s)
		asked = append(asked, requests)
		busy = append(busy, after-before)
		if i == runs-1 {
			pause(b, settle)
			used = c.memoryOfPods(b, client.InNamespace(controlPlane(name)))
			resting = c.idleOfPods(b, client.InNamespace(controlPlane(name)))
		}
		ends = append(ends, c.destroyOne(b, name))
	}
	printStages("Stages, since the HostedCluster was stored", all, stageOrder)
	printStages("Stages of the deletion", ends, endOrder)
	where()
	printRequests("Requests of the management API from applied to Available, of the last run", clients)
	rest := printIdle("Processor time of one hosted control plane while nothing happens", resting)
	total := printMemory("Memory of one hosted control plane", used)
	took := medianStage(all, stageApplied, stageAvailable)
	t := figures(fmt.Sprintf("One hosted cluster (time: median of %d runs; memory: %s after Available)", runs, settle))
	t.compare("HostedCluster applied → Available; floor: API server ready", took, f.ready, targetAvailable, seconds)
	t.compare("memory, RSS of all processes added", total.rss, f.memory.rss, targetMemory, mib)
	t.compare("memory, PSS (shared pages counted once)", total.pss, f.memory.pss, targetMemory, mib)
	t.compare("CPU seconds of node, management cluster and all pods until Available", median(busy), f.cpu, 0, seconds)
	t.limit("requests of the management API until Available", fmt.Sprintf("%.0f", median(asked)), "")
	deleted := medianStage(ends, stageDeleted, stageEnd)
	t.limit("deleted → HostedCluster gone", seconds(deleted), seconds(targetDeleted))
	t.limit("CPU at rest, of one core", percent(rest), percent(targetRest))
	t.print()
	report(b, map[string]float64{"available-s": took, "cpu-s": median(busy), "requests": median(asked), "deleted-s": deleted, "rest-percent": rest, "rss-MiB": total.rss / mebi, "pss-MiB": total.pss / mebi})
}

// createOne returns when the hosted cluster is available.
func (c *cluster) createOne(b *testing.B, name string) *stages {
	b.Helper()
	c.destroyAtEnd(b, name)
	ctx, cancel := context.WithTimeout(b.Context(), singleTimeout)
	defer cancel()
	s := newStages(100)
	if err := followOne(ctx, c.api, name, s); err != nil {
		b.Fatal(err)
	}
	if err := c.create(ctx, name, nil); err != nil {
		b.Fatal(err)
	}
	if err := s.wait(ctx, func(stage string) bool { return stage == stageAvailable }); err != nil {
		b.Fatalf("%s is not available after %s: %v\n%s", name, singleTimeout, err, c.explain(name))
	}
	return s
}

// medianStage is infinite for a stage that no run reached while it was watched.
func medianStage(all []*stages, from, name string) float64 {
	var values []float64
	for _, s := range all {
		if v, ok := s.since(from, name); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return math.Inf(1)
	}
	return median(values)
}

// printStages prints them in the order in which they were reached, since the first one; what came only after the last comes last.
func printStages(title string, all []*stages, order []string) {
	header := []string{"stage"}
	for i := range all {
		header = append(header, fmt.Sprintf("run %d", i+1))
	}
	t := newTable(title, append(header, "median", "after the one above")...)
	mid := map[string]float64{}
	for _, name := range order {
		mid[name] = medianStage(all, order[0], name)
	}
	sorted := slices.SortedStableFunc(slices.Values(order), func(a, b string) int { return cmp.Compare(mid[a], mid[b]) })
	before := 0.0
	for _, name := range sorted {
		row := []string{name}
		for _, s := range all {
			cell := "later"
			if v, ok := s.since(order[0], name); ok {
				cell = seconds(v)
			}
			row = append(row, cell)
		}
		if math.IsInf(mid[name], 1) {
			t.add(append(row, "later", "")...)
			continue
		}
		t.add(append(row, seconds(mid[name]), fmt.Sprintf("+%.2f s", mid[name]-before))...)
		before = mid[name]
	}
	t.print()
}

// memoryOfPods is the memory of pods by pod and program.
func (c *cluster) memoryOfPods(b *testing.B, opts ...client.ListOption) map[string]memory {
	b.Helper()
	pods := c.pods(b, opts...)
	found := processesIn(b, pods)
	used := map[string]memory{}
	for _, pod := range pods {
		for _, p := range found[string(pod.UID)] {
			m, err := memoryOf(p.pid)
			if err != nil {
				continue // it has ended meanwhile
			}
			key := pod.Name + "\t" + p.program
			used[key] = used[key].plus(m)
		}
	}
	return used
}

// processesIn finds the processes of pods, which must run on this machine.
func processesIn(b *testing.B, pods []corev1.Pod) map[string][]process {
	b.Helper()
	var uids []string
	for _, p := range pods {
		uids = append(uids, string(p.UID))
	}
	found, err := processesOf(uids)
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range pods {
		if len(found[string(p.UID)]) == 0 {
			b.Fatalf("pod %s/%s has no process on this machine: use the kubeconfig of a local cluster", p.Namespace, p.Name)
		}
	}
	return found
}

func printMemory(title string, used map[string]memory) memory {
	t := newTable(title, "pod", "program", "RSS", "PSS")
	var total memory
	var keys []string
	for key := range used {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		pod, program, _ := strings.Cut(key, "\t")
		t.add(pod, program, mib(used[key].rss), mib(used[key].pss))
		total = total.plus(used[key])
	}
	t.add("together", "", mib(total.rss), mib(total.pss))
	t.print()
	return total
}
