package rollout

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/status"
)

// named bounds how many clusters a message names.
const named = 5

// status counts, and says what the rollout waits for.
//
// Clusters that are being deleted don't count, nor do those that get no Package now and have none. One whose Package is missing all the same counts as
// unavailable and keeps the rollout progressing, but is not in the total, which is of Packages that exist.
func (m *maker) status() packagesv1.HostedClusterPackageStatus {
	total := packagesv1.HostedClusterPackageCountsStatus{ObservedGeneration: int32(m.in.Settings.Generation)} // the published width
	var parts []packagesv1.HostedClusterPackagePartitionStatus
	missing, paused := 0, int32(0)
	for _, g := range m.groups {
		counts := packagesv1.HostedClusterPackageCountsStatus{ObservedGeneration: total.ObservedGeneration}
		for _, x := range g.members {
			switch {
			case x.out():
			case x.missing:
				missing++
				counts.UnavailablePackages++
				total.UnavailablePackages++
			default:
				count(&counts, x.pkg)
				count(&total, x.pkg)
				paused += one(x.pkg.Paused)
			}
		}
		if m.in.Settings.Partitioned {
			parts = append(parts, packagesv1.HostedClusterPackagePartitionStatus{Name: shown(g.name), HostedClusterPackageCountsStatus: counts})
		}
	}
	return packagesv1.HostedClusterPackageStatus{
		HostedClusterPackageCountsStatus: total,
		Partitions:                       parts,
		Processing:                       m.plan.Processing,
		Conditions:                       m.conditions(total, missing, paused),
	}
}

func count(c *packagesv1.HostedClusterPackageCountsStatus, p Package) {
	c.TotalPackages++
	c.AvailablePackages += one(p.Available)
	c.UnavailablePackages += one(!p.Available)
	c.ProgressedPackages += one(p.Progressed)
	c.UpdatedPackages += one(p.Current)
}

func one(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func (m *maker) conditions(c packagesv1.HostedClusterPackageCountsStatus, missing int, paused int32) []metav1.Condition {
	made := func(kind string, is bool, whenTrue, whenFalse, message string) metav1.Condition {
		out := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: whenFalse, Message: message, ObservedGeneration: m.in.Settings.Generation}
		if is {
			out.Status, out.Reason = metav1.ConditionTrue, whenTrue
		}
		return out
	}
	progressing := m.plan.Sleeps || missing > 0 || c.ProgressedPackages < c.TotalPackages || c.UpdatedPackages < c.TotalPackages
	out := []metav1.Condition{
		made(packagesv1.ConditionAvailable, int(c.UnavailablePackages) <= m.in.Settings.Tolerated, "EnoughPackagesAvailable", "NotEnoughPackagesAvailable",
			fmt.Sprintf("%d/%d packages available.", c.AvailablePackages, c.TotalPackages)),
		made(packagesv1.ConditionProgressing, progressing, "NotAllPackagesProgressed", "AllPackagesProgressed",
			fmt.Sprintf("%d/%d packages progressed.", c.ProgressedPackages, c.TotalPackages)+m.explain(progressing)),
		made(packagesv1.ConditionHasPausedPackage, paused > 0, "AtLeastOnePackagePaused", "NoPackagePaused",
			fmt.Sprintf("%d/%d packages paused.", paused, c.TotalPackages)),
	}
	if n := len(m.plan.Kept); n > 0 {
		var kept []string
		for _, p := range m.plan.Kept {
			kept = append(kept, p.Namespace)
		}
		out = append(out, made(packagesv1.ConditionRemovalHeld, true, "SelectorLeavesOutMost", "", fmt.Sprintf(
			"The selector matches no longer the hosted clusters of %d Packages, more than are left; they are kept, in %s. Correct the selector, or confirm with annotation %s: %q.",
			n, list(kept), packagesv1.RolloutRemoveAnnotation, fmt.Sprint(n))))
	}
	return out
}

// explain follows the published sentence with what a person at night wants to know: where the rollout is, and what holds it. A rollout that has come to
// its end says nothing more than was published.
func (m *maker) explain(progressing bool) string {
	if !progressing {
		return ""
	}
	out := m.whatHolds()
	var closed, away, asleep []string
	for _, g := range m.groups {
		for _, x := range g.members {
			switch {
			case x.sleeps():
				asleep = append(asleep, x.Name.String())
			case x.Unready == "" || x.Leaving || !x.missing && (x.Asleep || x.pkg.done()):
			case x.missing || x.Closed:
				closed = append(closed, x.Name.String())
			default:
				away = append(away, x.Name.String())
			}
		}
	}
	if closed != nil {
		out = append(out, fmt.Sprintf("Hosted clusters that can't take a package now: %s.", list(closed)))
	}
	if asleep != nil {
		out = append(out, fmt.Sprintf("Hosted clusters that sleep, and have their turn when they wake (%d): %s.", len(asleep), list(asleep)))
	}
	if away != nil {
		out = append(out, fmt.Sprintf("Hosted clusters that are not Available, and come last in their group: %s.", list(away)))
	}
	if out == nil {
		return ""
	}
	return " " + strings.Join(out, " ")
}

func (m *maker) whatHolds() []string {
	var out []string
	if m.in.Settings.Options.Paused {
		out = append(out, "The rollout is paused.")
	}
	if m.plan.Group != "" {
		out = append(out, fmt.Sprintf("Group %s is current.", m.plan.Group))
	}
	if m.soaking > 0 {
		out = append(out, "It soaks before the next one starts.")
	}
	var down, updating, paused, returned, refused []string
	for _, g := range m.groups {
		for _, x := range g.members {
			if x.refused != "" && !x.Leaving && (x.missing || !x.pkg.Current) {
				refused = append(refused, fmt.Sprintf("%s (%s)", x.Name, x.refused))
			}
			switch {
			case x.out():
			case x.missing:
				down = append(down, x.Name.String())
			case x.pkg.Held && !x.pkg.Current:
				paused = append(paused, x.Name.String())
			case x.pkg.Returned && m.in.Settings.Options.OnFailure != Hold:
				returned = append(returned, x.Name.String())
			case !x.pkg.Available:
				down = append(down, x.Name.String())
			case x.inFlight:
				updating = append(updating, x.Name.String())
			}
		}
	}
	if refused != nil {
		out = append(out, fmt.Sprintf("Can't be written, and tried again later: %s.", list(refused)))
	}
	if paused != nil {
		out = append(out, fmt.Sprintf("Paused by somebody, unpause to go on: %s.", list(paused)))
	}
	if returned != nil {
		out = append(out, fmt.Sprintf("%s to the last good version: %s.", status.Returned, list(returned)))
	}
	if updating != nil {
		out = append(out, fmt.Sprintf("Being updated: %s.", list(updating)))
		if m.stuck() {
			out = append(out, fmt.Sprintf("What is being updated uses up maxUnavailable %d: if it does not end, raise that, or move the cluster to group %s.",
				m.in.Settings.MaxUnavailable, m.plan.Group))
		}
	}
	switch {
	case down != nil && !m.unlimited() && m.plan.Used >= m.in.Settings.MaxUnavailable:
		out = append(out, fmt.Sprintf("Unavailable, which uses up maxUnavailable %d: %s.", m.in.Settings.MaxUnavailable, list(down)))
	case down != nil:
		out = append(out, fmt.Sprintf("Unavailable: %s.", list(down)))
	}
	return out
}

// stuck tells that updates to an earlier template in later groups use the budget up while the current group waits. If they don't end, nobody goes on:
// they must not get a template that the current group has not proven, and to take the place of one that may yet go down is to take down too much.
func (m *maker) stuck() bool {
	if m.plan.Group == "" || m.plan.Used < m.in.Settings.MaxUnavailable || len(m.plan.Apply) > 0 {
		return false
	}
	for _, g := range m.groups[m.current+1:] {
		for _, x := range g.members {
			if x.inFlight && !x.pkg.Current && !x.pkg.down() {
				return true
			}
		}
	}
	return false
}

func list(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}
