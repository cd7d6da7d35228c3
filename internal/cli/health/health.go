// Package health says of an object in one word how it is, and in one line why, from what its own status says. It reads nothing.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
)

// Health is how an object is.
type Health string

// The words, from the best to the worst.
const (
	Healthy     Health = "Healthy"
	Progressing Health = "Progressing" // it gets there by itself, as far as can be told
	Deleting    Health = "Deleting"
	Paused      Health = "Paused"  // somebody has stopped it
	Blocked     Health = "Blocked" // nothing goes on before somebody acts
	Degraded    Health = "Degraded"
	Unknown     Health = "Unknown" // nobody has said anything yet
)

// Well tells whether nobody needs to look.
func (h Health) Well() bool { return h == Healthy }

// Finding is what is said of an object.
type Finding struct {
	Health Health     `json:"health"`
	Cause  string     `json:"cause,omitempty"` // one line; empty while it is healthy
	Since  *time.Time `json:"since,omitempty"` // when the cause began, where that is known
}

// maxCause bounds what is shown of a message, in bytes: anybody may write those of machines and packages.
const maxCause = 300

// Gates are conditions of a HostedCluster that stop the operator while they are False: nothing moves before a person does something.
var Gates = []string{
	hyperv1.ReconciliationActive, hyperv1.ValidHostedClusterConfiguration, hyperv1.SupportedHostedCluster, hyperv1.ValidReleaseImage,
	hyperv1.PlatformCredentialsFound, hyperv1.ControlPlaneAdmitted, hyperv1.ReconciliationSucceeded,
}

// Stages are conditions of a HostedCluster that become True one after the other while a control plane comes up.
var Stages = []string{
	hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.ValidReleaseInfo, hyperv1.InfrastructureReady, hyperv1.EtcdAvailable,
	hyperv1.KubeAPIServerAvailable, hyperv1.HostedClusterAvailable,
}

// Describe is a condition on one line: "EtcdAvailable=False (EtcdWaitingForQuorum): 0 of 1 members ready".
func Describe(cond *metav1.Condition) string {
	text := fmt.Sprintf("%s=%s (%s)", cond.Type, cond.Status, cond.Reason)
	if message := Line(cond.Message); message != "" {
		text += ": " + message
	}
	return text
}

// Line is a text as one line of bounded length, without what could steer a terminal.
func Line(text string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, clip.To(text, 4*maxCause)) // spaces are dropped below
	return clip.Over(strings.Join(strings.Fields(plain), " "), maxCause, "…")
}

// of is a finding about a condition; without a message its reason is the cause.
func of(h Health, c *metav1.Condition) Finding {
	return Finding{Health: h, Cause: Describe(c), Since: since(c.LastTransitionTime)}
}

func since(t metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t.Time
}

// deleting is a finding about an object with a deletion timestamp; why is what holds it, or empty.
func deleting(at *metav1.Time, why string, finalizers []string) Finding {
	return Finding{Health: Deleting, Since: since(*at), Cause: cmp.Or(why, "finalizers "+strings.Join(finalizers, ", "))}
}

// OfHostedCluster is how a hosted cluster is.
func OfHostedCluster(hc *hyperv1.HostedCluster) Finding {
	conds := hc.Status.Conditions
	if at := hc.DeletionTimestamp; at != nil {
		why := ""
		if c := conditions.Get(conds, hyperv1.HostedClusterDestroyed); c != nil {
			why = Line(c.Message)
		}
		return deleting(at, why, hc.Finalizers)
	}
	for _, gate := range Gates {
		switch c := conditions.Get(conds, gate); {
		case c == nil || c.Status != metav1.ConditionFalse:
		case gate == hyperv1.ReconciliationActive:
			return of(Paused, c)
		default:
			return of(Blocked, c)
		}
	}
	wasUp := hc.Annotations[hyperv1.HasBeenAvailableAnnotation] == "true"
	for _, stage := range Stages {
		c := conditions.Get(conds, stage)
		switch {
		case c == nil && len(conds) == 0:
			return Finding{Health: Unknown, Cause: "the operator hasn't looked at it yet"}
		case c == nil || c.Status == metav1.ConditionTrue:
		case wasUp:
			return of(Degraded, c)
		default:
			return of(Progressing, c)
		}
	}
	if c := conditions.Get(conds, hyperv1.HostedClusterDegraded); c != nil && c.Status == metav1.ConditionTrue {
		return of(Degraded, c)
	}
	if c := conditions.Get(conds, hyperv1.HostedClusterProgressing); c != nil && c.Status == metav1.ConditionTrue {
		return of(Progressing, c)
	}
	return Finding{Health: Healthy}
}

// OfComponent is how a component of a control plane is.
func OfComponent(c *hyperv1.ControlPlaneComponent) Finding {
	return OfConditions(c.Status.Conditions, hyperv1.ControlPlaneComponentAvailable, hyperv1.ControlPlaneComponentRolloutComplete)
}

// OfConditions is for objects with a condition that says that they work, and one that says that they are what they are to be.
func OfConditions(list []metav1.Condition, available, complete string) Finding {
	a, b := conditions.Get(list, available), conditions.Get(list, complete)
	switch {
	case a == nil:
		return Finding{Health: Unknown, Cause: "nobody has said anything about it yet"}
	case a.Status != metav1.ConditionTrue && b != nil && b.Status == metav1.ConditionTrue:
		return of(Degraded, a)
	case a.Status != metav1.ConditionTrue:
		return of(Progressing, a)
	case b != nil && b.Status != metav1.ConditionTrue:
		return of(Progressing, b)
	}
	return Finding{Health: Healthy}
}

// poolGates are conditions of a NodePool of which nothing goes on while they are False.
var poolGates = []string{
	hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidReleaseImageConditionType, hyperv1.NodePoolValidArchPlatform,
	hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidMachineTemplateConditionType, hyperv1.NodePoolValidTuningConfigConditionType,
	hyperv1.NodePoolUpdateManagementEnabledConditionType, hyperv1.NodePoolSupportedVersionSkewConditionType, hyperv1.NodePoolValidGeneratedPayloadConditionType,
}

// poolRollouts are True while machines are replaced or changed.
var poolRollouts = []string{
	hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
}

// OfNodePool is how a NodePool is.
func OfNodePool(np *hyperv1.NodePool) Finding {
	get := func(t string) *metav1.Condition {
		i := slices.IndexFunc(np.Status.Conditions, func(c hyperv1.NodePoolCondition) bool { return c.Type == t })
		if i < 0 {
			return nil
		}
		c := np.Status.Conditions[i]
		return &metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime}
	}
	ready := get(hyperv1.NodePoolReadyConditionType)
	if at := np.DeletionTimestamp; at != nil {
		why := ""
		if ready != nil {
			why = Line(ready.Message)
		}
		return deleting(at, why, np.Finalizers)
	}
	if len(np.Status.Conditions) == 0 {
		return Finding{Health: Unknown, Cause: "the operator hasn't looked at it yet"}
	}
	if c := get(hyperv1.NodePoolReconciliationActiveConditionType); c != nil && c.Status == metav1.ConditionFalse {
		return of(Paused, c)
	}
	for _, gate := range poolGates {
		if c := get(gate); c != nil && c.Status == metav1.ConditionFalse {
			return of(Blocked, c)
		}
	}
	for _, t := range poolRollouts {
		if c := get(t); c != nil && c.Status == metav1.ConditionTrue {
			return of(Progressing, c)
		}
	}
	for _, t := range []string{hyperv1.NodePoolReadyConditionType, hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolAllNodesHealthyConditionType} {
		if c := get(t); c != nil && c.Status == metav1.ConditionFalse {
			return of(Degraded, c)
		}
	}
	return Finding{Health: Healthy}
}

// OfMachine is how a machine is.
func OfMachine(m *clusterv1.Machine) Finding {
	why := func(types ...string) string {
		for _, t := range types {
			if c := conditions.Get(m.Status.Conditions, t); c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
				return Line(c.Message)
			}
		}
		return ""
	}
	ready := conditions.Get(m.Status.Conditions, clusterv1.MachineReadyCondition)
	switch {
	case m.DeletionTimestamp != nil:
		if c := conditions.Get(m.Status.Conditions, clusterv1.MachineDeletingCondition); c != nil && c.Message != "" {
			return deleting(m.DeletionTimestamp, Line(c.Message), nil)
		}
		return deleting(m.DeletionTimestamp, "", m.Finalizers)
	case m.Status.Phase == string(clusterv1.MachinePhaseFailed):
		return Finding{Health: Degraded, Cause: cmp.Or(why(clusterv1.MachineReadyCondition, clusterv1.InfrastructureReadyCondition), "it has failed")}
	case ready != nil && ready.Status == metav1.ConditionTrue:
		return Finding{Health: Healthy}
	case m.Status.NodeRef.Name != "" && ready != nil:
		return of(Degraded, ready)
	}
	f := Finding{Health: Progressing, Since: since(m.CreationTimestamp)}
	f.Cause = cmp.Or(why(clusterv1.InfrastructureReadyCondition, clusterv1.BootstrapConfigReadyCondition, clusterv1.MachineNodeHealthyCondition, clusterv1.MachineReadyCondition), "it has not become a node yet")
	return f
}

// OfPackage is how a Package is, or a ClusterPackage, which has the same status.
func OfPackage(p *packagesv1.Package) Finding {
	list := p.Status.Conditions
	is := func(t string, status metav1.ConditionStatus) *metav1.Condition {
		if c := conditions.Get(list, t); c != nil && c.Status == status {
			return c
		}
		return nil
	}
	if at := p.DeletionTimestamp; at != nil {
		return deleting(at, "", p.Finalizers)
	}
	if c := is(packagesv1.ConditionInvalid, metav1.ConditionTrue); c != nil {
		return of(Blocked, c)
	}
	if c := is(packagesv1.ConditionPaused, metav1.ConditionTrue); c != nil {
		return of(Paused, c)
	}
	if c := is(packagesv1.ConditionUnpacked, metav1.ConditionFalse); c != nil {
		return of(Blocked, c)
	}
	available := conditions.Get(list, packagesv1.ConditionAvailable)
	switch c := is(packagesv1.ConditionProgressing, metav1.ConditionTrue); {
	case available == nil:
		return Finding{Health: Unknown, Cause: "the package operator hasn't looked at it yet"}
	case c != nil && available.Status != metav1.ConditionTrue:
		return of(Progressing, available)
	case c != nil:
		return of(Progressing, c)
	case available.Status != metav1.ConditionTrue:
		return of(Degraded, available)
	}
	return Finding{Health: Healthy}
}

// OfRollout is how the rollout of a HostedClusterPackage is.
func OfRollout(p *packagesv1.HostedClusterPackage) Finding {
	list := p.Status.Conditions
	progressing, available := conditions.Get(list, packagesv1.ConditionProgressing), conditions.Get(list, packagesv1.ConditionAvailable)
	switch {
	case p.DeletionTimestamp != nil:
		return deleting(p.DeletionTimestamp, "", p.Finalizers)
	case p.Annotations[packagesv1.RolloutPausedAnnotation] == "true":
		return Finding{Health: Paused, Cause: "annotation " + packagesv1.RolloutPausedAnnotation}
	case progressing == nil || int64(p.Status.ObservedGeneration) < p.Generation:
		return Finding{Health: Unknown, Cause: "the controller hasn't seen the newest template yet"}
	case progressing.Status == metav1.ConditionTrue:
		return of(Progressing, progressing)
	case available != nil && available.Status == metav1.ConditionFalse:
		return of(Degraded, available)
	}
	return Finding{Health: Healthy}
}

// OfPod is how a pod is.
func OfPod(p *corev1.Pod) Finding {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return Finding{Health: Degraded, Cause: Line(fmt.Sprintf("container %s: %s: %s", s.Name, w.Reason, w.Message))}
		}
	}
	for _, c := range p.Status.Conditions {
		if (c.Type == corev1.PodReady || c.Type == corev1.PodScheduled) && c.Status != corev1.ConditionTrue && p.Status.Phase != corev1.PodSucceeded {
			return Finding{Health: Progressing, Cause: Line(fmt.Sprintf("%s=%s: %s", c.Type, c.Status, c.Message)), Since: since(c.LastTransitionTime)}
		}
	}
	return Finding{Health: Healthy}
}
