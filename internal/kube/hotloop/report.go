package hotloop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"hcp.internal/platform/internal/kube/events"
)

const (
	// endCheck is how often loops are looked at that may have ended. Nothing is looked at while there are none.
	endCheck = 15 * time.Second
	// maxSeries bounds the metric: names of field managers are chosen by whoever writes. What is beyond counts as manager "other".
	maxSeries = 32
	// actionWrite is the action of events.
	actionWrite = "Write"
)

// Reasons of events.
const (
	ReasonBegins = "HotLoop"
	ReasonEnds   = "HotLoopEnded"
)

var hotLoops = prometheus.NewDesc("hypershift_object_hot_loops",
	"Objects that are written again and again at present, by kind, loop (Fight: fields go back and forth; Storm: the same is written) and the managers of the fields.",
	[]string{"kind", "loop", "managers"}, nil)

// Reporter tells of loops.
type Reporter struct {
	Events events.Recorder // nil: nobody is told by events
	Log    logr.Logger     // the zero value: the manager's
	// Owner is who else is told of an object by an event, nil for nobody. Its namespace and name are used.
	Owner func(ctx context.Context, obj client.Object) *corev1.ObjectReference
}

// SetupWithManager has a manager run the reports, and serves the metric. Where leaders are elected, only the leader makes events and logs.
func (d *Detector) SetupWithManager(mgr manager.Manager, r Reporter) error {
	if err := metrics.Registry.Register(d); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) { // by another manager of a test
		return fmt.Errorf("registering metrics: %w", err)
	}
	if r.Log.GetSink() == nil {
		r.Log = mgr.GetLogger().WithName("hotloop")
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return d.Report(ctx, r) }))
}

// Report tells of loops until ctx ends.
func (d *Detector) Report(ctx context.Context, r Reporter) error {
	for {
		begun, ended, left := d.turn()
		for _, e := range begun {
			r.begins(ctx, e)
		}
		for _, e := range ended {
			r.ends(ctx, e)
		}
		if !d.await(ctx, left) {
			return nil
		}
	}
}

// await returns when there may be something to tell, and false when there is nobody any more to tell it.
func (d *Detector) await(ctx context.Context, some bool) bool {
	var check <-chan time.Time // never, while there is no loop
	if some {
		timer := time.NewTimer(endCheck)
		defer timer.Stop()
		check = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-d.wake:
	case <-check:
	}
	return true
}

// episode is a loop as it is told.
type episode struct {
	object client.Object
	found  verdict
	writes int
	lasted time.Duration
}

// turn takes what is to be told, and says whether there are loops left.
func (d *Detector) turn() (begun, ended []episode, left bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	for uid, t := range d.hot {
		e := episode{object: t.object, found: t.found, writes: t.writes.sum(now), lasted: now.Sub(t.since)}
		if !t.told {
			t.told = true
			begun = append(begun, e)
		} else if over(t.evidence(now)) {
			delete(d.hot, uid)
			t.found, t.object = verdict{}, nil
			ended = append(ended, e)
		}
	}
	return begun, ended, len(d.hot) > 0
}

func (r Reporter) begins(ctx context.Context, e episode) {
	r.Log.Info("an object is written again and again", "loop", e.found.Loop, "kind", e.object.GetObjectKind().GroupVersionKind().Kind,
		"object", client.ObjectKeyFromObject(e.object), "writers", e.found.Writers, "fields", e.found.Paths, "writes", e.writes)
	r.tell(ctx, e, true, ReasonBegins, e.found.note(e.writes))
}

func (r Reporter) ends(ctx context.Context, e episode) {
	r.Log.Info("an object is no longer written again and again", "kind", e.object.GetObjectKind().GroupVersionKind().Kind,
		"object", client.ObjectKeyFromObject(e.object), "lasted", e.lasted.Round(time.Second))
	r.tell(ctx, e, false, ReasonEnds, "No longer written again and again, after "+e.lasted.Round(time.Second).String())
}

func (r Reporter) tell(ctx context.Context, e episode, warning bool, reason, text string) {
	if r.Events == nil {
		return
	}
	apiVersion, kind := e.object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	events.Event(r.Events, &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: e.object.GetNamespace(), Name: e.object.GetName(), UID: e.object.GetUID(),
	}, warning, reason, actionWrite, text)
	if r.Owner == nil {
		return
	}
	if owner := r.Owner(ctx, e.object); owner != nil {
		events.Event(r.Events, owner, warning, reason, actionWrite, kind+" "+client.ObjectKeyFromObject(e.object).String()+": "+text)
	}
}

// Describe implements prometheus.Collector.
func (d *Detector) Describe(ch chan<- *prometheus.Desc) { ch <- hotLoops }

// Collect implements prometheus.Collector.
func (d *Detector) Collect(ch chan<- prometheus.Metric) {
	for labels, n := range d.counts() {
		ch <- prometheus.MustNewConstMetric(hotLoops, prometheus.GaugeValue, float64(n), labels[:]...)
	}
}

// counts are the loops by labels. A series that was there once stays, at 0, so that the end of a loop is seen, too.
func (d *Detector) counts() map[[3]string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.hot {
		d.series(t)
	}
	counts := map[[3]string]int{}
	for labels := range d.labels {
		counts[labels] = 0
	}
	for _, t := range d.hot {
		counts[d.series(t)]++
	}
	return counts
}

func (d *Detector) series(t *track) [3]string {
	writers := t.found.Writers
	if len(writers) > 2 {
		writers = append(slices.Clone(writers[:2]), "others")
	}
	labels := [3]string{t.object.GetObjectKind().GroupVersionKind().Kind, t.found.Loop, strings.ToValidUTF8(cmp.Or(strings.Join(writers, ","), "unknown"), "")}
	if !d.labels[labels] && len(d.labels) >= maxSeries {
		labels[2] = "other"
	}
	d.labels[labels] = true // bounded by kinds, which are those that this program watches
	return labels
}
