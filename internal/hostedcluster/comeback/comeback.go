package comeback

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/contract/upgrades"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/release"
)

// A control plane whose upgrade fails may go back to the release of before, if its HostedCluster asks for that (decision 83). spec.release stays what the
// user wrote: a note on the HostedCluster says which release stands in for it, for as long as spec.release names the one that failed.

// Case is what the decision about going back depends on. The zero value goes nowhere.
type Case struct {
	option   string         // the value of the annotation
	note     *upgrades.Note // nil: it did not go back
	held     bool           // nothing is changed now: a pause, a closed gate, a cluster that sleeps
	separate bool           // spec.controlPlaneRelease is set
	asked    string         // spec.release.image
	// target is the release that is asked for, and before the one of last; nil: not known.
	target, before *release.Release
	// last is the newest release that was rolled out completely and is not target; nil: there is none.
	last *configv1.UpdateHistory
	// under: the control plane was told to take target, and has not completed it.
	under bool
	// failing says since when the upgrade fails, and why; empty: it does not.
	failing string
	since   time.Time
	now     time.Time
}

// Verdict is what becomes of it.
type Verdict struct {
	// condition is UpgradeReturned; nil: it is absent.
	condition *metav1.Condition
	// Note is to be written: the control plane goes back; nil: it does not.
	Note *upgrades.Note
	// Left is the time after which to decide anew; 0: an event tells.
	Left time.Duration
}

// Decide says whether the control plane goes back. It goes back once: with a note there is never another.
func (c Case) Decide() Verdict {
	is := func(status metav1.ConditionStatus, reason, message string) Verdict {
		cond := conditions.New(upgrades.Returned, status, reason, message)
		return Verdict{condition: &cond}
	}
	if n := c.note; n != nil {
		return is(metav1.ConditionTrue, upgrades.FailedReason, clip.Over(fmt.Sprintf(
			"the upgrade from %s to %s failed, and the control plane went back to %s at %s: name another release in spec.release.image, or remove annotation %s to try again. What failed: %s",
			n.ToVersion, n.FromVersion, n.ToVersion, n.At.UTC().Format(time.RFC3339), upgrades.ReturnedAnnotation, n.Why), maxComebackMessage, "…"))
	}
	patience, err := upgrades.Patience(c.option)
	switch {
	case err != nil:
		return is(metav1.ConditionFalse, upgrades.InvalidReason, err.Error())
	case patience == 0:
		return Verdict{}
	case !c.under || c.failing == "" || c.held:
		return is(metav1.ConditionFalse, upgrades.NotFailedReason, "no upgrade has failed")
	}
	if why := c.impossible(); why != "" {
		return is(metav1.ConditionFalse, upgrades.ImpossibleReason, clip.Over("the control plane can't go back: "+why, maxComebackMessage, "…"))
	}
	if end := c.since.Add(patience); end.After(c.now) {
		v := is(metav1.ConditionFalse, upgrades.FailingReason, fmt.Sprintf("the upgrade to %s fails since %s: the control plane goes back to %s if it still does at %s",
			c.target.Version, c.since.UTC().Format(time.RFC3339), c.last.Version, end.UTC().Format(time.RFC3339)))
		v.Left = end.Sub(c.now)
		return v
	}
	return Verdict{Note: &upgrades.Note{From: c.asked, To: c.last.Image, FromVersion: c.target.Version, ToVersion: c.last.Version, At: c.now.Truncate(time.Second).UTC(), Why: clip.Line(c.failing)}}
}

// maxComebackMessage bounds the message of UpgradeReturned, in bytes.
const maxComebackMessage = 1000

// impossible says why there is no way back; empty: there is one. What was written to etcd by a newer minor version of Kubernetes may be unreadable for an
// older one, and etcd's own files are, so only another patch of the same minor version will do.
func (c Case) impossible() string {
	switch {
	case c.target == nil:
		return "the release that is asked for can't be read"
	case !c.target.Kubernetes:
		return "OpenShift payloads do not go back"
	case c.separate:
		return "spec.controlPlaneRelease is set: remove it, or change it by hand"
	case c.last == nil:
		return "no release has been rolled out completely before"
	case c.before == nil:
		return fmt.Sprintf("release %s of before can't be read", c.last.Image)
	case !c.before.Kubernetes || !release.SameMinor(c.before.Version, c.target.Version):
		return fmt.Sprintf("release %s is of another minor version than %s, and what is stored by one may be unreadable for the other", c.before.Version, c.target.Version)
	}
	if was, is := c.before.ComponentVersions[names.Etcd], c.target.ComponentVersions[names.Etcd]; was != is && (was == "" || is == "" || !release.SameMinor(was, is)) {
		return fmt.Sprintf("etcd has version %q in release %s and %q in %s, and its files do not go back", was, c.before.Version, is, c.target.Version)
	}
	return ""
}

// Of gathers what Decide needs.
func Of(obs *state.Observed, g status.Gates, now time.Time) Case {
	hc := obs.HC
	c := Case{option: hc.Annotations[upgrades.ReturnAnnotation], note: obs.Returned, asked: hc.Spec.Release.Image, target: obs.Target, before: obs.Before, last: obs.Last,
		separate: hc.Spec.ControlPlaneRelease != nil, now: now, held: obs.Hibernation.Active || !g.Open() || g.Upgrade != nil}
	if obs.HCP == nil || obs.Target == nil || releaseimage.ControlPlane(&obs.HCP.Spec) != obs.Target.Image {
		return c
	}
	newest := state.Newest(obs.HCP.Status.VersionStatus)
	c.under = newest.Image != "" && (!obs.Target.Matches(newest.Image) || newest.State == configv1.PartialUpdate)
	if c.failing, c.since = operatorFails(obs, newest); c.failing == "" {
		c.failing, c.since = rolloutFails(obs, newest, now)
	}
	return c
}

// operatorFails says why, and since when, the control-plane-operator of target does not run; empty: it does. What it was like before target was taken, or before
// the cluster began to wake, does not count. A cluster that wakes needs its operator, so this is told of one, too.
func operatorFails(obs *state.Observed, newest configv1.UpdateHistory) (why string, since time.Time) {
	t, progress := obs.OperatorTrouble(), conditions.Get(obs.HC.Status.Conditions, hyperv1.HostedClusterProgressing)
	if t == nil || progress == nil || progress.Status != metav1.ConditionTrue {
		return "", time.Time{}
	}
	since = latest(progress.LastTransitionTime.Time, newest.StartedTime.Time, obs.OperatorSince)
	if wakes := conditions.Get(obs.HC.Status.Conditions, hyperv1.HostedClusterHibernated); wakes != nil {
		since = latest(since, wakes.LastTransitionTime.Time)
	}
	return t.Message, since
}

// rolloutFails says why, and since when, the control plane does not get to target; empty: nobody says that. What is said of another release, or was before the
// operator saw the present spec, says nothing of target. Nor does what a cluster that is not awake lacks: the time counts from when it was.
func rolloutFails(obs *state.Observed, newest configv1.UpdateHistory, now time.Time) (why string, since time.Time) {
	told := conditions.Current(obs.HCP.Status.Conditions, hyperv1.ClusterVersionSucceeding, obs.HCP.Generation)
	if told == nil || told.Status != metav1.ConditionFalse || !obs.Target.Matches(newest.Image) || pause.WorkersOff(obs.HC, now) {
		return "", time.Time{}
	}
	since = latest(told.LastTransitionTime.Time, newest.StartedTime.Time)
	if heard := conditions.Get(obs.HC.Status.Conditions, hyperv1.ClusterVersionSucceeding); heard != nil { // Unknown while the cluster slept
		since = latest(since, heard.LastTransitionTime.Time)
	}
	return told.Message, since
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// lastGood is the newest release that a control plane had completely before target.
func lastGood(v *hyperv1.ClusterVersionStatus, target *release.Release) *configv1.UpdateHistory {
	if v == nil {
		return nil
	}
	for i := range v.History {
		if h := &v.History[i]; h.State == configv1.CompletedUpdate && !target.Matches(h.Image) {
			return h
		}
	}
	return nil
}

// Observe looks the release of before up while an upgrade is under way and the HostedCluster asks to go back from one that fails.
func Observe(ctx context.Context, obs *state.Observed, provider release.Provider, secret []byte) {
	if patience, err := upgrades.Patience(obs.HC.Annotations[upgrades.ReturnAnnotation]); patience == 0 || err != nil || obs.Returned != nil || obs.HCP == nil || obs.Target == nil {
		return
	}
	v := obs.HCP.Status.VersionStatus
	if n := state.Newest(v); obs.Target.Matches(n.Image) && n.State == configv1.CompletedUpdate {
		return
	}
	if obs.Last = lastGood(v, obs.Target); obs.Last == nil {
		return
	}
	before, err := provider.Lookup(ctx, obs.Last.Image, secret)
	if err != nil { // UpgradeReturned says that it can't be read; the next pass tries again
		ctrl.LoggerFrom(ctx).V(1).Info("the release of before can't be read", "image", obs.Last.Image, "error", err.Error())
		return
	}
	obs.Before = before
}

// StandIn puts the release that a control plane went back to in the place of the one that failed, in hc alone. nil: it did not go back, or another release
// is asked for since.
func StandIn(hc *hyperv1.HostedCluster) *upgrades.Note {
	text, ok := hc.Annotations[upgrades.ReturnedAnnotation]
	if !ok || hc.Spec.ControlPlaneRelease != nil {
		return nil
	}
	note, err := upgrades.ParseNote(text)
	if err != nil || note.From != hc.Spec.Release.Image {
		return nil
	}
	// Only to where it has been: whoever may annotate need not be who may choose releases.
	if v := hc.Status.Version; v == nil || !slices.ContainsFunc(v.History, func(h configv1.UpdateHistory) bool { return h.State == configv1.CompletedUpdate && h.Image == note.To }) {
		return nil
	}
	hc.Spec.Release.Image = note.To
	return &note
}

// Forget takes a note off that is not heeded any more, so that the release that it tells of may be asked for again.
func Forget(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, now time.Time) error {
	if _, ok := hc.Annotations[upgrades.ReturnedAnnotation]; !ok || pause.At(hc.Spec.PausedUntil, now).Active {
		return nil
	}
	if err := c.Patch(ctx, hc, patch.Annotation(upgrades.ReturnedAnnotation, nil)); err != nil {
		return fmt.Errorf("taking the note about an upgrade off HostedCluster %s: %w", names.BackReference(hc), err)
	}
	return nil
}

// GoBack writes the note. The event of that write begins the pass that heeds it.
func GoBack(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, note upgrades.Note) error {
	text, err := note.Text()
	if err != nil {
		return err
	}
	// A release that the user names meanwhile is not overruled: the note tells which one failed.
	if err := c.Patch(ctx, hc, patch.Annotation(upgrades.ReturnedAnnotation, &text)); err != nil {
		return fmt.Errorf("noting that HostedCluster %s goes back to release %s: %w", names.BackReference(hc), note.ToVersion, err)
	}
	ctrl.LoggerFrom(ctx).Info("the control plane goes back to the release of before", "from", note.FromVersion, "to", note.ToVersion)
	return nil
}

// Report reports it. A control plane that went back does not progress to what is asked for.
func Report(hc *hyperv1.HostedCluster, v Verdict, now time.Time) {
	if v.condition == nil {
		conditions.Remove(&hc.Status.Conditions, upgrades.Returned)
		return
	}
	set := []metav1.Condition{*v.condition}
	if v.condition.Status == metav1.ConditionTrue && conditions.IsFalse(hc.Status.Conditions, hyperv1.HostedClusterProgressing) {
		set = append(set, conditions.False(hyperv1.HostedClusterProgressing, hyperv1.BlockedReason, v.condition.Message))
	}
	for i := range set {
		set[i].ObservedGeneration = hc.Generation
	}
	conditions.Set(&hc.Status.Conditions, now, set...)
}
