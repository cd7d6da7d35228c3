package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/test/adversary/world"
)

// known is how long a Package that broke by itself must have been down for everybody to know it: one that breaks in the moment in which another is changed
// is nobody's fault, and a machine on which everything else is killed may make a moment long. One that was changed is down at once: who changed it knows.
const known = 10 * time.Second

// Budget sees the Packages of a fleet as anybody does. Of the rollout it knows nothing.
type Budget struct {
	// Name of the Packages. At most Max may be down.
	Name string
	Max  int
	// Leaving says that a namespace's hosted cluster is being destroyed; its Package doesn't count any more.
	Leaving  func(namespace string) bool
	Violated func(invariant, what string)

	seen map[string]onePackage
}

type onePackage struct {
	spec string
	up   bool
	// changed says that it was up until it was changed, and not heard to be up since.
	changed bool
	// downSince is when it was first seen to be down or changed.
	downSince time.Time
}

// see judges one event. It returns what is wrong with it, "" when nothing is.
func (b *Budget) see(p *v1alpha1.Package, now time.Time) string {
	if b.seen == nil {
		b.seen = map[string]onePackage{}
	}
	if !p.DeletionTimestamp.IsZero() {
		delete(b.seen, p.Namespace)
		return ""
	}
	spec := p.Spec.Image
	if p.Spec.Config != nil {
		spec += string(p.Spec.Config.Raw)
	}
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAvailable)
	is := onePackage{spec: spec, up: c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == p.Generation}
	was, known := b.seen[p.Namespace]
	wrong := ""
	if known && was.up && was.spec != is.spec {
		wrong = b.judge(p.Namespace, now)
		is.changed = !is.up
	}
	switch {
	case is.up:
	case known && !was.up:
		is.downSince, is.changed = was.downSince, was.changed
	default:
		is.downSince = now
	}
	b.seen[p.Namespace] = is
	return wrong
}

func (b *Budget) judge(namespace string, now time.Time) string {
	var down []string
	for _, other := range slices.Sorted(maps.Keys(b.seen)) {
		o := b.seen[other]
		if other != namespace && !o.up && (o.changed || now.Sub(o.downSince) >= known) && !b.Leaving(other) {
			down = append(down, fmt.Sprintf("%s for %s", other, now.Sub(o.downSince).Round(time.Second)))
		}
	}
	if len(down) < b.Max {
		return ""
	}
	return fmt.Sprintf("the Package in %s was up and was changed while %d others were down, of %d: %v", namespace, len(down), b.Max, down)
}

// Run watches until ctx ends. What happened while a watch was broken isn't judged, as nobody knows in which order it did.
func (b *Budget) Run(ctx context.Context, w *world.World) {
	scheme, err := world.Scheme()
	if err != nil {
		return
	}
	cfg := *w.Management
	cfg.Timeout = 0 // a watch goes on
	c, err := client.NewWithWatch(&cfg, client.Options{Scheme: scheme})
	if err != nil {
		return
	}
	for world.Wait(ctx, time.Second) {
		b.watch(ctx, c)
	}
}

func (b *Budget) watch(ctx context.Context, c client.WithWatch) {
	list := &v1alpha1.PackageList{}
	if err := c.List(ctx, list, client.MatchingFields{"metadata.name": b.Name}); err != nil {
		return
	}
	before := b.seen
	b.seen = nil
	for i := range list.Items {
		b.see(&list.Items[i], time.Now())
		ns := list.Items[i].Namespace
		if was, ok := before[ns]; ok && !was.up && !b.seen[ns].up {
			b.seen[ns] = was // it was down all along, as far as anybody knows
		}
	}
	events, err := c.Watch(ctx, list, client.MatchingFields{"metadata.name": b.Name}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		p, ok := event.Object.(*v1alpha1.Package)
		switch {
		case !ok:
			return // an error: begin anew
		case event.Type == apiwatch.Deleted:
			delete(b.seen, p.Namespace)
		default:
			if wrong := b.see(p, time.Now()); wrong != "" {
				b.Violated("budgets of rollouts", wrong)
			}
		}
	}
}
