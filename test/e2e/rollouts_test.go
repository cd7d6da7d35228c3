//go:build e2e && openshift

package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// workload is a Deployment or StatefulSet as an onlooker sees it.
type workload struct {
	Metadata struct {
		Name       string
		Generation int64
	}
	Spec struct {
		Replicas *int32
		Template json.RawMessage
	}
	Status struct {
		ObservedGeneration                                          int64
		Replicas, UpdatedReplicas, AvailableReplicas, ReadyReplicas int32
	}
}

func (w workload) complete() bool {
	s, want := w.Status, int32(1)
	if w.Spec.Replicas != nil {
		want = *w.Spec.Replicas
	}
	return s.ObservedGeneration >= w.Metadata.Generation && s.UpdatedReplicas == want && s.Replicas == want && s.ReadyReplicas == want
}

// rollouts is what an onlooker has seen of a control plane since it began: which pod templates changed, and when those that changed had
// rolled out. It asks the API each second and knows nothing of the operators.
type rollouts struct {
	namespace string

	mu               sync.Mutex
	before           map[string]string
	changed, settled map[string]time.Time
	stop             chan struct{}
	done             sync.WaitGroup
}

func watchRollouts(t *testing.T, namespace string) *rollouts {
	t.Helper()
	r := &rollouts{namespace: namespace, before: map[string]string{}, changed: map[string]time.Time{}, settled: map[string]time.Time{}, stop: make(chan struct{})}
	for name, w := range r.list(t) {
		r.before[name] = string(w.Spec.Template)
	}
	if len(r.before) == 0 {
		t.Fatal("there are no workloads to look at")
	}
	r.done.Go(func() {
		for {
			select {
			case <-r.stop:
				return
			case <-time.After(time.Second):
				r.look(r.list(t))
			}
		}
	})
	t.Cleanup(r.end)
	return r
}

func (r *rollouts) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
}

func (r *rollouts) list(t *testing.T) map[string]workload {
	out, err := management().try(t, "get", "deployments,statefulsets", "-n", r.namespace, "-o", "json")
	var list struct{ Items []workload }
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		return nil // asked again in a second
	}
	got := map[string]workload{}
	for _, w := range list.Items {
		got[w.Metadata.Name] = w
	}
	return got
}

func (r *rollouts) look(now map[string]workload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now() // one for all: what is seen together has no order
	for name, w := range now {
		if string(w.Spec.Template) == r.before[name] {
			continue
		}
		if _, ok := r.changed[name]; !ok {
			r.changed[name] = at
		}
		if _, ok := r.settled[name]; !ok && w.complete() {
			r.settled[name] = at
		}
	}
}

// names are those of the workloads whose template changed, sorted.
func (r *rollouts) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.changed))
}

// pending are those that changed and haven't rolled out.
func (r *rollouts) pending() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var late []string
	for name := range r.changed {
		if _, ok := r.settled[name]; !ok {
			late = append(late, name)
		}
	}
	slices.Sort(late)
	return late
}

// expectBefore fails the test for those of later that changed before first had rolled out.
func (r *rollouts) expectBefore(t *testing.T, first string, later ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	done, ok := r.settled[first]
	if !ok {
		t.Errorf("%s has not rolled out", first)
		return
	}
	for _, name := range later {
		if at, ok := r.changed[name]; !ok {
			t.Errorf("%s has not changed", name)
		} else if at.Before(done) {
			t.Errorf("%s changed %s before %s had rolled out", name, done.Sub(at).Round(time.Millisecond), first)
		}
	}
}
