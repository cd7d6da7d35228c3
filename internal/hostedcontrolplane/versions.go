package hostedcontrolplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// maxHistory is the bound that the API puts on histories.
const maxHistory = 100

// rollout is what both version histories are computed from.
type rollout struct {
	desired configv1.Release
	// complete is true when every component runs the version.
	complete   bool
	generation int64
	now        time.Time
}

// entry is what the two kinds of history entries have in common.
type entry struct {
	state     configv1.UpdateState
	started   metav1.Time
	completed *metav1.Time
	version   string
	image     string
}

// advance moves a history, newest first, to the desired release. A release is new when neither its image nor its version is that of the newest entry:
// the same release may be named by tag first and by digest later, and a release without a version yet by its image. The entry that is left behind
// is closed. A completed entry stays completed; a Partial one completes with the rollout.
func advance(history []entry, r rollout) []entry {
	now := metav1.NewTime(r.now.Truncate(time.Second)) // what the API stores
	switch {
	case len(history) == 0 || !sameRelease(history[0], r.desired):
		if len(history) > 0 && history[0].completed == nil {
			history[0].completed = &now
		}
		history = slices.Insert(history, 0, entry{state: configv1.PartialUpdate, started: now, version: r.desired.Version, image: r.desired.Image})
	default:
		history[0].image, history[0].version = r.desired.Image, r.desired.Version
	}
	if r.complete && history[0].state == configv1.PartialUpdate {
		history[0].state, history[0].completed = configv1.CompletedUpdate, &now
	}
	return prune(history)
}

func sameRelease(e entry, desired configv1.Release) bool {
	return e.image == desired.Image || e.version != "" && e.version == desired.Version
}

// prune drops the least telling entries past maxHistory: rollouts that were given up before rollouts that were completed, old before new. The newest, the
// newest completed, the first of all, and the first completed of each minor version stay as long as anything else can go.
func prune(history []entry) []entry {
	for len(history) > maxHistory {
		worst, worstRank := len(history)-2, 0
		firstOfMinor := firstCompletedOfMinor(history)
		newestCompleted := slices.IndexFunc(history, func(e entry) bool { return e.state == configv1.CompletedUpdate })
		for i := 1; i < len(history)-1; i++ {
			rank := 1
			switch {
			case i == newestCompleted:
				continue
			case history[i].state != configv1.CompletedUpdate:
				rank = 3
			case !firstOfMinor[i]:
				rank = 2
			}
			if rank >= worstRank { // the oldest of equals, as later ones are older
				worst, worstRank = i, rank
			}
		}
		history = slices.Delete(history, worst, worst+1)
	}
	return history
}

func firstCompletedOfMinor(history []entry) map[int]bool {
	out, seen := map[int]bool{}, map[string]bool{}
	for i := len(history) - 1; i >= 0; i-- {
		minor := minorOf(history[i].version)
		if history[i].state == configv1.CompletedUpdate && !seen[minor] {
			seen[minor], out[i] = true, true
		}
	}
	return out
}

// minorOf gives "1.36" of "1.36.3".
func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// olderMinor tells that a is of a minor version before that of b; false when one of them is no version.
func olderMinor(a, b string) bool {
	va, errA := version.ParseSemantic(a)
	vb, errB := version.ParseSemantic(b)
	return errA == nil && errB == nil && (va.Major() < vb.Major() || va.Major() == vb.Major() && va.Minor() < vb.Minor())
}

// controlPlaneVersion is status.controlPlaneVersion.
func controlPlaneVersion(before hyperv1.ControlPlaneVersionStatus, r rollout) hyperv1.ControlPlaneVersionStatus {
	history := make([]entry, 0, len(before.History)+1)
	for _, h := range before.History {
		history = append(history, entry{h.State, h.StartedTime, h.CompletionTime, h.Version, h.Image})
	}
	after := hyperv1.ControlPlaneVersionStatus{Desired: r.desired, ObservedGeneration: r.generation}
	for _, e := range advance(history, r) {
		after.History = append(after.History, hyperv1.ControlPlaneUpdateHistory{State: e.state, StartedTime: e.started, CompletionTime: e.completed, Version: e.version, Image: e.image})
	}
	return after
}

// clusterVersion is status.versionStatus for a release that has no cluster version operator in the hosted cluster to report it.
func clusterVersion(before *hyperv1.ClusterVersionStatus, r rollout) *hyperv1.ClusterVersionStatus {
	after := &hyperv1.ClusterVersionStatus{}
	if before != nil {
		after = before.DeepCopy()
	}
	old := after.History
	history := make([]entry, 0, len(old)+1)
	for _, h := range old {
		history = append(history, entry{h.State, h.StartedTime, h.CompletionTime, h.Version, h.Image})
	}
	after.Desired, after.ObservedGeneration, after.History = r.desired, r.generation, nil
	for _, e := range advance(history, r) {
		after.History = append(after.History, configv1.UpdateHistory{State: e.state, StartedTime: e.started, CompletionTime: e.completed, Version: e.version, Image: e.image})
	}
	return after
}

// rolloutPatience is how long a rollout may take before it counts as failing. A highly available control plane takes a quarter of that.
const rolloutPatience = 40 * time.Minute

// versionReport is what the conditions about the version are computed from.
type versionReport struct {
	status *hyperv1.ClusterVersionStatus
	// waiting are components that do not run the release completely, failures why components can't be brought to it.
	waiting, failures []string
	// behind says why the control plane does not get to the release; empty when it does.
	behind string
	// running is since when a rollout could go on: the time that a cluster sleeps does not count.
	running, now time.Time
}

// waitsFor is what the newest version waits for, as the end of a sentence; empty when that is nothing.
func (r versionReport) waitsFor(list func([]string) string) string {
	switch {
	case r.behind != "":
		return ": " + r.behind
	case len(r.waiting) > 0:
		return ": waiting for " + list(r.waiting)
	}
	return ""
}

// clusterVersionConditions stand in for those of a ClusterVersion, for a release that could be loaded.
func clusterVersionConditions(r versionReport) []metav1.Condition {
	newest := configv1.UpdateHistory{}
	if len(r.status.History) > 0 {
		newest = r.status.History[0]
	}
	accepted := versionCondition(hyperv1.ClusterVersionReleaseAccepted, true,
		fmt.Sprintf("The release %s was loaded from %s", r.status.Desired.Version, r.status.Desired.Image))
	failing := r.failing(newest)
	conds := []metav1.Condition{
		versionCondition(hyperv1.ClusterVersionFailing, failing != "", failing),
		versionCondition(hyperv1.ClusterVersionSucceeding, failing == "", failing),
		r.upgradeable(newest),
		{Type: hyperv1.ClusterVersionRetrievedUpdates, Status: metav1.ConditionUnknown, Reason: hyperv1.StatusUnknownReason,
			Message: "Kubernetes releases have no update service"},
		accepted,
	}
	if newest.State == configv1.CompletedUpdate {
		conds = append(conds, versionCondition(hyperv1.ClusterVersionProgressing, false, "The cluster runs version "+newest.Version))
	} else {
		all := func(names []string) string { return strings.Join(names, ", ") }
		conds = append(conds, versionCondition(hyperv1.ClusterVersionProgressing, true, "Working towards "+newest.Version+r.waitsFor(all)))
	}
	completed := completedVersion(r.status.History)
	if completed == "" {
		return append(conds, versionCondition(hyperv1.ClusterVersionAvailable, false, "No version has been rolled out completely yet"))
	}
	return append(conds, versionCondition(hyperv1.ClusterVersionAvailable, true, "The cluster has been rolled out to version "+completed))
}

func versionCondition(kind string, is bool, message string) metav1.Condition {
	c := conditions.False(kind, hyperv1.FromClusterVersionReason, message)
	if is {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// failing says why the version can't be rolled out, or keeps from being so; empty when it can.
func (r versionReport) failing(newest configv1.UpdateHistory) string {
	if len(r.failures) > 0 {
		return listed(r.failures)
	}
	since := newest.StartedTime.Time
	if since.Before(r.running) {
		since = r.running
	}
	if newest.State != configv1.PartialUpdate || newest.StartedTime.IsZero() || r.now.Sub(since) < rolloutPatience {
		return ""
	}
	return fmt.Sprintf("version %s is not rolled out since %s", newest.Version, newest.StartedTime.UTC().Format(time.RFC3339)) + r.waitsFor(listed)
}

// upgradeable: another minor version has to wait for the one that is being rolled out, since parts of the control plane still have the one before,
// and may be no more than one behind. The first rollout replaces nothing, so it can be given up for any other.
func (r versionReport) upgradeable(newest configv1.UpdateHistory) metav1.Condition {
	completed := completedVersion(r.status.History)
	if newest.State == configv1.PartialUpdate && completed != "" && minorOf(completed) != minorOf(newest.Version) {
		return versionCondition(hyperv1.ClusterVersionUpgradeable, false, fmt.Sprintf("the upgrade from %s to %s has not ended", completed, newest.Version)+r.waitsFor(listed))
	}
	return versionCondition(hyperv1.ClusterVersionUpgradeable, true, "")
}

// completedVersion is the newest that was rolled out completely, empty when none was.
func completedVersion(history []configv1.UpdateHistory) string {
	for _, h := range history {
		if h.State == configv1.CompletedUpdate {
			return h.Version
		}
	}
	return ""
}
