//go:build bench

package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// idleOfPods is which part of a core, in percent, the programs of pods use while nothing happens, by pod and program. What commands use that a
// program waits for counts, too.
func (c *cluster) idleOfPods(b *testing.B, opts ...client.ListOption) map[string]float64 {
	b.Helper()
	pods := c.pods(b, opts...)
	look := func() map[string]float64 {
		used := map[string]float64{}
		found := processesIn(b, pods)
		for _, pod := range pods {
			for _, p := range found[string(pod.UID)] {
				if seconds, err := cpuWithChildren(p.pid); err == nil { // else it has ended meanwhile
					used[pod.Name+"\t"+p.program] += seconds
				}
			}
		}
		return used
	}
	begin, before := time.Now(), look()
	pause(b, idle)
	after, took := look(), time.Since(begin).Seconds()
	share := map[string]float64{}
	for key := range after {
		share[key] = (after[key] - before[key]) / took * 100
	}
	return share
}

// printIdle prints what idleOfPods found, and returns the sum.
func printIdle(title string, share map[string]float64) (total float64) {
	t := newTable(title, "pod", "program", "of a core")
	for _, key := range slices.Sorted(maps.Keys(share)) {
		pod, name, _ := strings.Cut(key, "\t")
		t.add(pod, name, percent(share[key]))
		total += share[key]
	}
	t.add("together", "", percent(total))
	t.print()
	fmt.Printf("watched for %s\n", idle)
	return total
}
