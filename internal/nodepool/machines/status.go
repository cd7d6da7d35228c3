package machines

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
)

// Finding is a condition without its type.
type Finding struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

var fine = Finding{Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason, Message: hyperv1.AllIsWellMessage}

// DeploymentComplete tells that every machine of a MachineDeployment is there, available and made from target. sets are those of the pool.
//
// The counters of the MachineDeployment alone do not tell: right after a change of the template, machines still count as up to date, because
// that is a condition of each Machine, which is changed later. So the MachineSets are asked what machines were made from.
func DeploymentComplete(md *clusterv1.MachineDeployment, sets []clusterv1.MachineSet, target Generation) bool {
	want, s := ptr.Deref(md.Spec.Replicas, 0), md.Status
	if s.ObservedGeneration < md.Generation || ptr.Deref(s.Replicas, 0) != want || ptr.Deref(s.AvailableReplicas, 0) != want || ptr.Deref(s.UpToDateReplicas, 0) != want {
		return false
	}
	available := int32(0)
	for i := range sets {
		set := &sets[i]
		if GenerationOf(&set.Spec.Template) == target {
			available += ptr.Deref(set.Status.AvailableReplicas, 0)
		} else if ptr.Deref(set.Spec.Replicas, 0) > 0 || ptr.Deref(set.Status.Replicas, 0) > 0 {
			return false
		}
	}
	return available == want
}

// DeploymentReady sums a MachineDeployment up.
func DeploymentReady(md *clusterv1.MachineDeployment) Finding {
	if md == nil {
		return Finding{metav1.ConditionFalse, hyperv1.NodePoolNotFoundReason, "the MachineDeployment does not exist yet"}
	}
	return ready("MachineDeployment", md.Status.Conditions, ptr.Deref(md.Spec.Replicas, 0), ptr.Deref(md.Status.AvailableReplicas, 0))
}

// SetReady sums a MachineSet up.
func SetReady(ms *clusterv1.MachineSet) Finding {
	if ms == nil {
		return Finding{metav1.ConditionFalse, hyperv1.NodePoolNotFoundReason, "the MachineSet does not exist yet"}
	}
	return ready("MachineSet", ms.Status.Conditions, ptr.Deref(ms.Spec.Replicas, 0), ptr.Deref(ms.Status.AvailableReplicas, 0))
}

// ready repeats condition Available where Cluster API sets one, and else counts.
func ready(kind string, list []metav1.Condition, want, available int32) Finding {
	if c := conditions.Get(list, clusterv1.AvailableCondition); c != nil && c.Status != metav1.ConditionUnknown {
		f := Finding{c.Status, c.Reason, c.Message}
		if f.Status == metav1.ConditionTrue {
			return fine
		}
		if f.Reason == "" {
			f.Reason = hyperv1.AsExpectedReason
		}
		if f.Message == "" {
			f.Message = fmt.Sprintf("%d of %d machines are available", available, want)
		}
		return f
	}
	if available < want {
		return Finding{metav1.ConditionFalse, hyperv1.WaitingForAvailableReason, fmt.Sprintf("%s: %d of %d machines are available", kind, available, want)}
	}
	return fine
}

// RemediationBlocked is why a MachineHealthCheck replaces nothing, nil when it may.
func RemediationBlocked(mhc *clusterv1.MachineHealthCheck) *Finding {
	if mhc == nil {
		return nil
	}
	c := conditions.Get(mhc.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	f := Finding{metav1.ConditionFalse, c.Reason, c.Message}
	if f.Reason == "" {
		f.Reason = hyperv1.NodePoolTooManyUnhealthyReason
	}
	return &f
}

// maxMachines is how many machines a message names for each reason.
const maxMachines = 5

// AllReady sums the Machines up: whether each runs. explain gives better words for one that doesn't, and none where
// it has none; nil: nobody has.
func AllReady(list []clusterv1.Machine, want int32, explain func(*clusterv1.Machine) string) Finding {
	return aggregate(list, want, explain, func(m *clusterv1.Machine) *metav1.Condition {
		if c := conditions.Get(m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition); c != nil && c.Status != metav1.ConditionTrue {
			return c
		}
		if c := conditions.Get(m.Status.Conditions, clusterv1.MachineReadyCondition); c != nil {
			return c
		}
		return conditions.Get(m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)
	})
}

// AllHealthy sums the nodes of the Machines up.
func AllHealthy(list []clusterv1.Machine, want int32) Finding {
	return aggregate(list, want, nil, func(m *clusterv1.Machine) *metav1.Condition {
		return conditions.Get(m.Status.Conditions, clusterv1.MachineNodeHealthyCondition)
	})
}

func aggregate(list []clusterv1.Machine, want int32, explain func(*clusterv1.Machine) string, of func(*clusterv1.Machine) *metav1.Condition) Finding {
	switch {
	case len(list) == 0 && want == 0:
		return Finding{metav1.ConditionTrue, hyperv1.AsExpectedReason, "NodePool set to no replicas"}
	case len(list) == 0:
		return Finding{metav1.ConditionFalse, hyperv1.NodePoolNotFoundReason, "no machines are created yet"}
	}
	wrong, reasons := map[string][]string{}, map[string]bool{}
	for i := range list {
		reason, message := "Pending", "not reported yet"
		if c := of(&list[i]); c != nil {
			if c.Status == metav1.ConditionTrue {
				continue
			}
			if c.Reason != "" {
				reason = c.Reason
			}
			message = firstLine(c.Message)
		}
		if explain != nil {
			message = cmp.Or(firstLine(explain(&list[i])), message)
		}
		reasons[reason] = true
		wrong[reason] = append(wrong[reason], fmt.Sprintf("Machine %s: %s: %s", list[i].Name, reason, message))
	}
	if len(wrong) == 0 {
		return fine
	}
	var lines []string
	count := 0
	for _, reason := range slices.Sorted(maps.Keys(wrong)) {
		group := wrong[reason]
		slices.Sort(group)
		count += len(group)
		if more := len(group) - maxMachines; more > 0 {
			group = append(group[:maxMachines:maxMachines], fmt.Sprintf("and %d more with reason %s", more, reason))
		}
		lines = append(lines, group...)
	}
	reason := slices.Sorted(maps.Keys(reasons))
	return Finding{metav1.ConditionFalse, reason[0], fmt.Sprintf("%d of %d machines are not ready\n%s", count, len(list), strings.Join(lines, "\n"))}
}

// maxLine bounds what is repeated of another program's message, in bytes.
const maxLine = 300

// progress are messages that only count steps, which would change the condition all the time.
var progress = regexp.MustCompile(`^\d+ of \d+ completed$`)

func firstLine(message string) string {
	var parts []string
	for line := range strings.SplitSeq(message, "\n") {
		if line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "* ")); line != "" && !progress.MatchString(line) {
			parts = append(parts, line)
		}
	}
	s := strings.Join(parts, "; ")
	if len(s) > maxLine {
		s = clip.To(s, maxLine-3) + "..."
	}
	return s
}

// NodeVersions counts nodes by their versions. Machines that have no node yet do not count. poolVersion is for machines that do not say
// which release they run.
func NodeVersions(list []clusterv1.Machine, poolVersion string) []hyperv1.NodeVersion {
	type versions struct{ release, kubelet string }
	counts := map[versions]*hyperv1.NodeVersion{}
	for i := range list {
		m := &list[i]
		v := versions{release: m.Annotations[hyperv1.NodePoolReleaseVersionAnnotation]}
		if v.release == "" {
			v.release = poolVersion
		}
		if m.Status.NodeInfo != nil {
			v.kubelet = m.Status.NodeInfo.KubeletVersion
		}
		if !plausible.MatchString(v.release) || !plausible.MatchString(v.kubelet) || len(v.release) > maxVersion || len(v.kubelet) > maxVersion {
			continue // a node can say anything of itself
		}
		n := counts[v]
		if n == nil {
			n = &hyperv1.NodeVersion{OCPVersion: v.release, KubeletVersion: v.kubelet}
			counts[v] = n
		}
		if conditions.IsTrue(m.Status.Conditions, clusterv1.MachineNodeHealthyCondition) {
			n.ReadyNodeCount++
		} else {
			n.UnreadyNodeCount++
		}
	}
	var out []hyperv1.NodeVersion
	for _, n := range counts {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b hyperv1.NodeVersion) int {
		return strings.Compare(a.OCPVersion+" "+a.KubeletVersion, b.OCPVersion+" "+b.KubeletVersion)
	})
	return out[:min(len(out), maxNodeVersions)]
}

const (
	maxVersion      = 64  // of the API
	maxNodeVersions = 100 // of the API
)

var plausible = regexp.MustCompile(`^v?\d+\.\d+\.\d+[-+.0-9A-Za-z]*$`)

// NetworkConflict names machines whose addresses all lie in the pod network, so that nodes and pods can't be told apart; empty: none.
func NetworkConflict(list []clusterv1.Machine, podNetworks []netip.Prefix) string {
	var wrong []string
	for i := range list {
		inside, counted := 0, 0
		for _, a := range list[i].Status.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if err != nil || ip.IsLinkLocalUnicast() {
				continue
			}
			counted++
			if slices.ContainsFunc(podNetworks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
				inside++
			}
		}
		if counted > 0 && inside == counted {
			wrong = append(wrong, list[i].Name)
		}
	}
	slices.Sort(wrong)
	if more := len(wrong) - maxMachines; more > 0 {
		wrong = append(wrong[:maxMachines:maxMachines], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(wrong, ", ")
}
