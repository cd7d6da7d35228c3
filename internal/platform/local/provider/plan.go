package provider

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform/machine"
)

// recheck is when a machine that waits for something without events, a Secret, is looked at again.
const recheck = 5 * time.Second

// plan is what to do and to report. At most one of the actions is set; the zero plan does nothing.
type plan struct {
	create    *corev1.Pod // make this pod
	deletePod *corev1.Pod // end this one
	release   bool        // take the finalizer off
	abandon   bool        // delete the LocalMachine, which nobody will ever use

	providerID string // to be set; empty: leave it
	status     infrav1.LocalMachineStatus
	recheck    time.Duration // 0: wait for an event
}

// planFor decides. It makes a pod only for a machine that never had one.
func planFor(obs observed) plan {
	p := plan{status: *obs.local.Status.DeepCopy()}
	paused := conditions.False(pausedCondition, "NotPaused", "")
	if obs.paused() {
		paused.Status, paused.Reason = metav1.ConditionTrue, infrav1.ReasonPaused
		p.set(obs, paused)
		return p
	}
	p.set(obs, paused)
	if !obs.local.DeletionTimestamp.IsZero() {
		return p.deletion(obs)
	}
	p.set(obs, bootstrapCondition(obs))
	if obs.pod != nil && obs.ours() {
		return p.present(obs)
	}
	if obs.local.Status.PodUID != "" {
		return p.absent(obs, infrav1.ReasonMachineGone, fmt.Sprintf("the pod %s of this machine no longer exists; a machine is not made twice: delete the Machine to have another one", obs.local.Name))
	}
	if obs.pod != nil {
		p.recheck = recheck
		return p.absent(obs, infrav1.ReasonInvalidSpec, fmt.Sprintf("a pod named %s exists that is not this machine; it must go first", obs.local.Name))
	}
	switch {
	case obs.orphaned:
		p.abandon = true
		return p.absent(obs, infrav1.ReasonWaitingForMachine, "the Machine that this LocalMachine was made for never came")
	case obs.machine == nil:
		p.recheck = obs.orphanIn
		return p.absent(obs, infrav1.ReasonWaitingForMachine, "no Machine owns this LocalMachine yet")
	case obs.cluster == nil || !ptr.Deref(obs.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return p.absent(obs, infrav1.ReasonWaitingForCluster, "the Cluster's infrastructure is not provisioned yet")
	case obs.bootstrap != bootstrapReady:
		p.recheck = recheck
		c := bootstrapCondition(obs)
		return p.absent(obs, c.Reason, c.Message)
	}
	p.create = machinePod(obs.local, obs.secret, obs.placement)
	return p.absent(obs, infrav1.ReasonPodPending, "the pod is being created")
}

// pausedCondition is the one that Cluster API's contract names.
const pausedCondition = "Paused"

// set adds conditions. The times are the caller's to fill in.
func (p *plan) set(obs observed, conds ...metav1.Condition) {
	for _, c := range conds {
		c.ObservedGeneration = obs.local.Generation
		replaced := false
		for i := range p.status.Conditions {
			if p.status.Conditions[i].Type == c.Type {
				c.LastTransitionTime = p.status.Conditions[i].LastTransitionTime
				if p.status.Conditions[i].Status != c.Status {
					c.LastTransitionTime = metav1.Time{} // filled in when it is written
				}
				p.status.Conditions[i], replaced = c, true
			}
		}
		if !replaced {
			p.status.Conditions = append(p.status.Conditions, c)
		}
	}
}

// absent reports a machine that doesn't run.
func (p plan) absent(obs observed, reason, message string) plan {
	p.set(obs,
		conditions.False(infrav1.MachinePodRunning, reason, message),
		conditions.False(infrav1.MachineReady, reason, message),
	)
	return p
}

// present reports a machine by its pod. provisioned stays true once it was, as the contract asks.
func (p plan) present(obs observed) plan {
	p.status.PodUID = string(obs.pod.UID)
	p.providerID = providerID(obs.local.Namespace, obs.local.Name)
	state := stateOf(obs.pod)
	p.status.Reboots = state.reboots
	if obs.pod.Status.PodIP != "" {
		p.status.Addresses = addresses(obs.pod)
	}
	if !state.running {
		return p.absent(obs, state.reason, state.message)
	}
	p.status.Initialization.Provisioned = ptr.To(true)
	p.set(obs,
		conditions.True(infrav1.MachinePodRunning, infrav1.ReasonReady, ""),
		conditions.True(infrav1.MachineReady, infrav1.ReasonReady, ""),
	)
	return p
}

// deletion ends the pod, whatever it is doing, and lets go of the LocalMachine when it is gone.
func (p plan) deletion(obs observed) plan {
	if obs.pod == nil || !metav1.IsControlledBy(obs.pod, obs.local) {
		p.release = true
		return p
	}
	if obs.pod.DeletionTimestamp.IsZero() {
		p.deletePod = obs.pod
	}
	return p.absent(obs, infrav1.ReasonDeleting, fmt.Sprintf("waiting for the pod %s to end, which may take %d s", obs.pod.Name, stopSeconds))
}

// podState is what a pod's status says of a machine.
type podState struct {
	running         bool
	reason, message string
	reboots         int32
}

func stateOf(pod *corev1.Pod) podState {
	s := podState{reason: infrav1.ReasonPodPending, message: "the pod is not scheduled yet"}
	var container *corev1.ContainerStatus
	if len(pod.Status.ContainerStatuses) > 0 {
		container = &pod.Status.ContainerStatuses[0]
		s.reboots = container.RestartCount
	}
	switch {
	case !pod.DeletionTimestamp.IsZero():
		s.reason, s.message = infrav1.ReasonMachineGone, "somebody deletes the machine's pod"
	case pod.Status.Phase == corev1.PodSucceeded:
		s.reason, s.message = infrav1.ReasonPoweredOff, "the machine was switched off from inside"
	case pod.Status.Phase == corev1.PodFailed:
		s.reason, s.message = infrav1.ReasonMachineFailed, "the management cluster ended the pod: "+bounded(pod.Status.Reason+" "+pod.Status.Message)
	case container != nil && container.State.Running != nil && pod.Status.PodIP != "":
		s.running = true
	case container != nil && container.RestartCount > 0:
		s.reason, s.message = infrav1.ReasonRebooting, "the machine ended unexpectedly and starts again"
		if last := container.LastTerminationState.Terminated; last != nil {
			s.message = fmt.Sprintf("the machine ended with exit code %d and starts again", last.ExitCode)
		}
	case container != nil && container.State.Waiting != nil:
		s.message = bounded("the container waits: " + container.State.Waiting.Reason + " " + container.State.Waiting.Message)
	default:
		for _, c := range pod.Status.Conditions {
			if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
				continue
			}
			s.message = bounded("the pod is not scheduled: " + c.Message)
			if c.Reason == corev1.PodReasonSchedulingGated {
				s.message = bounded("the pod waits until there is room for it: " + cmp.Or(pod.Annotations[machine.WaitingForRoomAnnotation], "the hypershift-operator has not looked yet"))
			}
		}
	}
	return s
}

// maxMessage bounds text of others in conditions.
const maxMessage = 512

func bounded(s string) string { return clip.Over(s, maxMessage, "…") }

// addresses of a machine: the node's name, and the pod's addresses.
func addresses(pod *corev1.Pod) []infrav1.MachineAddress {
	out := []infrav1.MachineAddress{{Type: "Hostname", Address: pod.Name}, {Type: "InternalDNS", Address: pod.Name}}
	for _, ip := range pod.Status.PodIPs {
		if ip.IP != "" {
			out = append(out, infrav1.MachineAddress{Type: "InternalIP", Address: ip.IP})
		}
	}
	return out
}

func bootstrapCondition(obs observed) metav1.Condition {
	c := conditions.False(infrav1.MachineBootstrapDataReady, infrav1.ReasonWaitingForBootstrapData, "")
	switch obs.bootstrap {
	case bootstrapUnnamed:
		c.Message = "the Machine names no Secret with user data yet"
	case bootstrapMissing:
		c.Message = fmt.Sprintf("there is no Secret %s", obs.secret)
	case bootstrapInvalid:
		c.Reason, c.Message = infrav1.ReasonInvalidBootstrapData, fmt.Sprintf("the Secret %s has nothing under the key %s", obs.secret, userDataKey)
	case bootstrapReady:
		c.Status, c.Reason = metav1.ConditionTrue, infrav1.ReasonReady
	}
	return c
}
