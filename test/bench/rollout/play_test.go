//go:build bench

package rollout

import (
	"context"
	"hash/fnv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
)

// play is the package operator: it lets every Package that was changed become available after a while, and notes what a watch shows.
func (x *bench) play() {
	ctx := x.Context()
	work := make(chan *packagesv1.Package, 5000)
	for range 8 {
		go func() {
			for {
				select {
				case p := <-work:
					x.settle(ctx, p)
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	// A busy API server ends watches; the next one begins with everything that there is.
	for ctx.Err() == nil {
		w, err := x.c.Watch(ctx, &packagesv1.PackageList{})
		if err != nil {
			x.pause(time.Second)
			continue
		}
		for event := range w.ResultChan() {
			if p, ok := event.Object.(*packagesv1.Package); ok && event.Type != watch.Deleted {
				if in := x.note(p, time.Now()); in >= 0 {
					time.AfterFunc(in, func() { work <- p })
				}
			}
		}
		w.Stop()
	}
}

// note keeps what a watch showed, and tells after how long a Package comes up that was changed; it is negative for all others.
func (x *bench) note(p *packagesv1.Package, now time.Time) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p.Name != "addon" {
		x.floor = append(x.floor, now)
		return -1
	}
	if x.started[p.Namespace] < p.Generation {
		x.started[p.Namespace] = p.Generation
		x.writes++
		x.steps.changed(now)
		return x.takes(p)
	}
	if c := conditions.Get(p.Status.Conditions, packagesv1.ConditionAvailable); c != nil && c.ObservedGeneration == p.Generation && p.Spec.Image == x.image && !x.up[p.Namespace] {
		x.up[p.Namespace] = true
		if x.rolling {
			x.steps.up(p.Namespace, now)
		}
	}
	return -1
}

// takes is how long a Package takes to come up: the same in every run, between half and one and a half times the mean.
func (x *bench) takes(p *packagesv1.Package) time.Duration {
	if !x.rolling {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.Namespace)) // never fails
	return x.mean/2 + x.mean*time.Duration(h.Sum32()%1000)/1000
}

func (x *bench) settle(ctx context.Context, p *packagesv1.Package) {
	before := p.DeepCopy()
	conditions.Set(&p.Status.Conditions, time.Now(),
		metav1.Condition{Type: packagesv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Bench", ObservedGeneration: p.Generation},
		metav1.Condition{Type: packagesv1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "Bench", ObservedGeneration: p.Generation},
		metav1.Condition{Type: packagesv1.ConditionUnpacked, Status: metav1.ConditionTrue, Reason: "Bench", ObservedGeneration: p.Generation})
	if err := x.c.Status().Patch(ctx, p, client.MergeFrom(before)); err != nil && ctx.Err() == nil {
		x.Errorf("settling %s: %v", p.Namespace, err)
	}
}
