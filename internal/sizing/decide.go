package sizing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
)

// Reasons of the conditions about sizes; that of ClusterSizeComputed, and of ClusterSizeTransitionRequired while it is True, is a size.
const (
	DelayNotElapsed  = "TransitionDelayNotElapsed"
	ConcurrencyLimit = "ConcurrencyLimitReached"
	Transitioned     = "ClusterSizeTransitioned"
	SizeNotKnown     = "ClusterSizeNotKnown"
	SwitchedOff      = "SizesAreOff"
)

// Types are the conditions of a HostedCluster that the sizing controller owns, in the order in which it writes them.
var Types = []string{hyperv1.ClusterSizeComputed, hyperv1.ClusterSizeTransitionPending, hyperv1.ClusterSizeTransitionRequired}

// Config is what counts of a ClusterSizingConfiguration that Check has nothing against.
type Config struct {
	Sizes  Sizes
	Window time.Duration
	// Limit is how many changes the window holds; 0: any number.
	Limit              int
	Increase, Decrease time.Duration
}

// What counts where spec.concurrency is left out, whose own defaults are filled in only where it is there.
const (
	defaultLimit  = 5
	defaultWindow = 10 * time.Minute
)

// ConfigOf is the Config of a configuration.
func ConfigOf(spec *schedulingv1alpha1.ClusterSizingConfigurationSpec) Config {
	if spec.Concurrency.Limit == 0 { // which nobody can write
		spec = spec.DeepCopy()
		spec.Concurrency.Limit, spec.Concurrency.SlidingWindow.Duration = defaultLimit, defaultWindow
	}
	return Config{
		Sizes: spec.Sizes, Window: spec.Concurrency.SlidingWindow.Duration, Limit: int(spec.Concurrency.Limit),
		Increase: spec.TransitionDelay.Increase.Duration, Decrease: spec.TransitionDelay.Decrease.Duration,
	}
}

// Cluster is what sizing knows of any cluster of the fleet.
type Cluster struct {
	Key types.NamespacedName
	// Changed is when it got its size; zero: it has none.
	Changed time.Time
	// Waiting is since when it has waited for its turn, its delay being over; zero: it doesn't.
	Waiting time.Time
}

// ClusterOf reads a Cluster from its conditions. One that is paused or being deleted waits for no turn, though its change counts.
func ClusterOf(hc *hyperv1.HostedCluster, now time.Time) Cluster {
	c := Cluster{Key: types.NamespacedName{Namespace: hc.Namespace, Name: hc.Name}}
	if computed := conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeComputed); computed != nil && computed.Status == metav1.ConditionTrue {
		c.Changed = computed.LastTransitionTime.Time
	}
	pending, required := conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionPending), conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionRequired)
	if hc.DeletionTimestamp.IsZero() && !pause.At(hc.Spec.PausedUntil, now).Active && pending != nil && required != nil &&
		pending.Status == metav1.ConditionTrue && pending.Reason == ConcurrencyLimit && required.Status == metav1.ConditionTrue {
		c.Waiting = required.LastTransitionTime.Time
	}
	return c
}

// Decision is what becomes of a cluster.
type Decision struct {
	// Label is the size that its label has to have; empty: as it is.
	Label string
	// Conditions are all of Types, to be written if one differs; nil: as they are.
	Conditions []metav1.Condition
	// From and To are set when the cluster changes its size now; From is empty for the first one.
	From, To string
	// Again is after how long to look again by itself; 0: when something changes.
	Again time.Duration
	// Why in words.
	Why string
}

// current is the size that the cluster has, "" for none.
func current(hc *hyperv1.HostedCluster) string {
	if c := conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeComputed); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// Decide says what becomes of a cluster. fleet are all clusters of the operator; it may contain the cluster itself.
//
// The first size comes at once. While nobody can tell what size it should have it keeps the one that it has, and waits for no other. Another one is taken when it has been wanted for the whole delay, or at once when somebody ordered it, and when
// fewer than Limit clusters changed within the window, this one being next by how long it has waited. A cluster that was not placed yet
// (annotation cluster-scheduled) waits for no turn.
func Decide(c Config, hc *hyperv1.HostedCluster, want Want, fleet []Cluster, now time.Time) Decision {
	size := current(hc)
	d := Decision{Label: size, Why: want.Why}
	switch {
	case want.Size == "" && size == "":
		return Unsized(hc, want.Why, now)
	case want.Size == "": // and no change is pending, or it would be ahead of others for ever, and its delay would go on
		d.Conditions = idle(hc, SizeNotKnown, want.Why, now)
		return d
	case size == "":
		d.From, d.To, d.Label = "", want.Size, want.Size
		d.Conditions = settled(hc, want, now)
		return d
	case size == want.Size:
		d.Conditions = keep(hc, now)
		return d
	}
	since := now
	if r := conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeTransitionRequired); r != nil && r.Status == metav1.ConditionTrue && r.Reason == want.Size {
		since = r.LastTransitionTime.Time
	}
	if left := since.Add(c.delay(size, want)).Sub(now); left > 0 {
		d.Again = left
		d.Why = fmt.Sprintf("%s; it changes to %s when that has been so for %s", want.Why, want.Size, c.delay(size, want))
		d.Conditions = waiting(hc, DelayNotElapsed, want, d.Why, since)
		return d
	}
	if hc.Annotations[hyperv1.HostedClusterScheduledAnnotation] == "true" {
		if left, why := c.turn(types.NamespacedName{Namespace: hc.Namespace, Name: hc.Name}, since, fleet, now); left > 0 {
			d.Again, d.Why = left, want.Why+"; "+why
			d.Conditions = waiting(hc, ConcurrencyLimit, want, d.Why, since)
			return d
		}
	}
	d.From, d.To, d.Label = size, want.Size, want.Size
	d.Conditions = settled(hc, want, now)
	return d
}

// delay is how long another size has to be wanted. What somebody ordered needs no proof that it lasts.
func (c Config) delay(from string, want Want) time.Duration {
	if want.Ordered {
		return 0
	}
	was, is := c.Sizes.Named(from), c.Sizes.Named(want.Size)
	if was == nil || was.Criteria.From < is.Criteria.From { // a size that there is no more counts as the smallest
		return c.Increase
	}
	return c.Decrease
}

// turn is how long a cluster has to wait for its turn at least, and why; 0: it is now.
func (c Config) turn(key types.NamespacedName, since time.Time, fleet []Cluster, now time.Time) (time.Duration, string) {
	if c.Limit <= 0 || c.Window <= 0 {
		return 0, ""
	}
	begin := now.Add(-c.Window)
	var recent []time.Time
	ahead := 0
	for _, other := range fleet {
		if other.Changed.After(begin) {
			recent = append(recent, other.Changed)
		}
		if other.Key != key && !other.Waiting.IsZero() && cmp.Or(other.Waiting.Compare(since), compareKeys(other.Key, key)) < 0 {
			ahead++
		}
	}
	if len(recent)+ahead < c.Limit {
		return 0, ""
	}
	slices.SortFunc(recent, time.Time.Compare)
	left := 5 * time.Second // what is ahead goes now
	if n := len(recent); n > 0 && n >= c.Limit {
		left = max(recent[n-c.Limit].Add(c.Window).Sub(now), time.Second)
	}
	return left, fmt.Sprintf("%d clusters changed their size within %s, and %d at most may; %d are ahead of it", len(recent), c.Window, c.Limit, ahead)
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// settled are the conditions of a cluster that has got its size now.
func settled(hc *hyperv1.HostedCluster, want Want, now time.Time) []metav1.Condition {
	at := metav1.NewTime(now.Truncate(time.Second))
	out := []metav1.Condition{
		conditions.True(hyperv1.ClusterSizeComputed, want.Size, want.Why),
		conditions.False(hyperv1.ClusterSizeTransitionPending, Transitioned, asItShould),
		conditions.False(hyperv1.ClusterSizeTransitionRequired, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage),
	}
	for i := range out {
		out[i].LastTransitionTime, out[i].ObservedGeneration = at, hc.Generation
	}
	return out
}

const asItShould = "the cluster has the size that it should have"

// keep are the conditions of a cluster that has the size that it should have.
func keep(hc *hyperv1.HostedCluster, now time.Time) []metav1.Condition {
	return idle(hc, Transitioned, asItShould, now)
}

// Unsized is what becomes of a cluster without a size while nobody can tell which it should have.
func Unsized(hc *hyperv1.HostedCluster, why string, now time.Time) Decision {
	out := settled(hc, Want{}, now)
	out[0].Status, out[0].Reason, out[0].Message = metav1.ConditionFalse, SizeNotKnown, why
	out[1].Reason, out[1].Message = SizeNotKnown, why
	for i := range out {
		out[i] = still(hc, out[i])
	}
	return Decision{Conditions: out, Why: why}
}

// Off are the conditions of a cluster that has a size, where sizes were switched off: it keeps that, and no change is pending. nil: it has none.
func Off(hc *hyperv1.HostedCluster, now time.Time) []metav1.Condition {
	if current(hc) == "" {
		return nil
	}
	return idle(hc, SwitchedOff, "sizes are switched off, so the cluster keeps this one and what follows from it: install with --enable-size-tagging again, or see docs/sizes.md for what to remove", now)
}

// idle are the conditions of a cluster that keeps its size, and why no change is pending. What is so already stays to the letter, so that nothing is written.
func idle(hc *hyperv1.HostedCluster, reason, why string, now time.Time) []metav1.Condition {
	out := settled(hc, Want{}, now)
	out[0] = *conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeComputed)
	out[1].Reason, out[1].Message = reason, why
	for i := 1; i < len(out); i++ {
		out[i] = still(hc, out[i])
	}
	return out
}

// still is a condition with the time since when it has its status, and the one that is there if that says the same, reason and words included.
func still(hc *hyperv1.HostedCluster, c metav1.Condition) metav1.Condition {
	old := conditions.Get(hc.Status.Conditions, c.Type)
	if old == nil || old.Status != c.Status {
		return c
	}
	if old.Reason == c.Reason && old.Message == c.Message {
		return *old
	}
	c.LastTransitionTime = old.LastTransitionTime
	return c
}

// waiting are the conditions of a cluster that should have another size since a time.
func waiting(hc *hyperv1.HostedCluster, reason string, want Want, why string, since time.Time) []metav1.Condition {
	at := metav1.NewTime(since.Truncate(time.Second))
	if at.Time.Before(since) { // or the delay would end early
		at = metav1.NewTime(at.Add(time.Second))
	}
	pending := conditions.True(hyperv1.ClusterSizeTransitionPending, reason, why)
	required := conditions.True(hyperv1.ClusterSizeTransitionRequired, want.Size, want.Why)
	pending.LastTransitionTime, required.LastTransitionTime = at, at
	pending.ObservedGeneration, required.ObservedGeneration = hc.Generation, hc.Generation
	return []metav1.Condition{*conditions.Get(hc.Status.Conditions, hyperv1.ClusterSizeComputed), as(hc, pending), as(hc, required)}
}

// as is the condition that is there if it says the same, and the new one otherwise. Words alone are no change: numbers in them go up and down.
func as(hc *hyperv1.HostedCluster, c metav1.Condition) metav1.Condition {
	if old := conditions.Get(hc.Status.Conditions, c.Type); old != nil && old.Status == c.Status && old.Reason == c.Reason {
		return *old
	}
	return c
}
