package component

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/conditions"
)

// Conditions of a ControlPlaneComponent, and their reasons.
const (
	// Available is True while the component serves.
	Available = "Available"
	// RolloutComplete is True when every replica runs what is wanted; only then status.version moves.
	RolloutComplete = "RolloutComplete"

	AsExpectedReason                = "AsExpected"
	NotFoundReason                  = "NotFound"
	WaitingForAvailableReason       = "WaitingForAvailable"
	WaitingForDependenciesReason    = "WaitingForDependencies"
	WaitingForRolloutCompleteReason = "WaitingForRolloutComplete"
	WaitingForOperandsReason        = "WaitingForOperands"
	ReconciliationErrorReason       = "ReconciliationError"
	JobActiveReason                 = "JobActive"
	JobFailedReason                 = "JobFailed"
	JobCompleteReason               = "JobComplete"
	JobUnknownReason                = "Unknown"
)

// observation is what the conditions of a component are computed from.
type observation struct {
	live       client.Object // the workload, nil when absent
	current    bool          // live has the spec that was rendered last; false right after a write
	missing    []string      // dependencies
	reconciled error         // why the component could not be brought to what is wanted
	operands   error         // what its operands lack
	// trouble and troubleText are why pods do not run; empty: nothing is known.
	trouble, troubleText string
}

// blame puts the root cause in place of a reason that only counts replicas.
func (obs observation) blame(cond metav1.Condition) metav1.Condition {
	counted := cond.Reason == WaitingForAvailableReason || cond.Reason == WaitingForRolloutCompleteReason || cond.Reason == NotFoundReason
	if cond.Status == metav1.ConditionTrue || obs.trouble == "" || obs.live == nil || !counted {
		return cond
	}
	cond.Reason, cond.Message = obs.trouble, obs.troubleText
	return cond
}

// availableCondition says whether the component serves.
func availableCondition(obs observation) metav1.Condition {
	cond := conditions.False(Available, WaitingForAvailableReason, "")
	switch w := obs.live.(type) {
	case nil:
		cond.Reason, cond.Message = NotFoundReason, "the workload does not exist"
		if len(obs.missing) > 0 {
			cond.Message += "; it waits for " + strings.Join(obs.missing, ", ")
		}
	case *appsv1.Deployment:
		deploymentAvailable(w, &cond)
	case *appsv1.StatefulSet:
		want := ptr.Deref(w.Spec.Replicas, 1)
		if want == 0 || w.Status.AvailableReplicas > 0 {
			return expected(cond)
		}
		cond.Message = fmt.Sprintf("0 of %d replicas are available", want)
	case *batchv1.CronJob:
		return expected(cond)
	case *batchv1.Job:
		jobAvailable(w, &cond)
	}
	return cond
}

func expected(cond metav1.Condition) metav1.Condition {
	cond.Status, cond.Reason, cond.Message = metav1.ConditionTrue, AsExpectedReason, ""
	return cond
}

func deploymentAvailable(d *appsv1.Deployment, cond *metav1.Condition) {
	for _, c := range d.Status.Conditions {
		if c.Type != appsv1.DeploymentAvailable {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			*cond = expected(*cond)
			return
		}
		cond.Message = fmt.Sprintf("%d of %d replicas are available: %s",
			d.Status.AvailableReplicas, ptr.Deref(d.Spec.Replicas, 1), c.Message)
		return
	}
	if ptr.Deref(d.Spec.Replicas, 1) == 0 {
		*cond = expected(*cond) // nothing is missing, as the condition will say
		return
	}
	cond.Reason, cond.Message = NotFoundReason, "the Deployment has no condition Available yet"
}

func jobAvailable(j *batchv1.Job, cond *metav1.Condition) {
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			*cond = expected(*cond)
			return
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			cond.Reason, cond.Message = JobFailedReason, c.Message
			if c.Reason != "" {
				cond.Reason = c.Reason
			}
			return
		}
	}
	if j.Status.Active > 0 {
		*cond = expected(*cond)
		return
	}
	cond.Reason, cond.Message = JobUnknownReason, "the Job has neither started nor ended"
}

// rolloutCondition says whether every replica runs what is wanted.
func rolloutCondition(obs observation) metav1.Condition {
	cond := metav1.Condition{Type: RolloutComplete, Status: metav1.ConditionFalse}
	switch {
	case obs.reconciled != nil:
		cond.Reason, cond.Message = ReconciliationErrorReason, obs.reconciled.Error()
	case len(obs.missing) > 0:
		cond.Reason = WaitingForDependenciesReason
		cond.Message = "Waiting for Dependencies: " + strings.Join(obs.missing, ", ")
	case obs.live == nil:
		cond.Reason, cond.Message = NotFoundReason, "the workload does not exist"
	case !obs.current:
		cond.Reason, cond.Message = WaitingForRolloutCompleteReason, "the new specification has just been written"
	default:
		workloadRollout(obs.live, &cond)
		if cond.Status == metav1.ConditionTrue && obs.operands != nil {
			cond.Status = metav1.ConditionFalse
			cond.Reason, cond.Message = WaitingForOperandsReason, obs.operands.Error()
		}
	}
	return cond
}

func workloadRollout(live client.Object, cond *metav1.Condition) {
	cond.Reason = WaitingForRolloutCompleteReason
	switch w := live.(type) {
	case *appsv1.Deployment:
		s := w.Status
		replicaRollout(cond, ptr.Deref(w.Spec.Replicas, 1), s.ObservedGeneration >= w.Generation,
			s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, s.ReadyReplicas)
	case *appsv1.StatefulSet:
		s := w.Status
		replicaRollout(cond, ptr.Deref(w.Spec.Replicas, 1), s.ObservedGeneration >= w.Generation,
			s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, s.ReadyReplicas)
	case *batchv1.CronJob:
		*cond = expected(*cond)
	case *batchv1.Job:
		jobRollout(w, cond)
	}
}

// replicaRollout compares the counts of a Deployment or StatefulSet with what is wanted.
func replicaRollout(cond *metav1.Condition, want int32, observed bool, replicas, updated, available, ready int32) {
	if !observed {
		cond.Message = "the newest specification has not been picked up yet"
		return
	}
	if replicas == want && updated == want && available == want && ready == want {
		*cond = expected(*cond)
		return
	}
	cond.Message = fmt.Sprintf("of %d replicas, %d are up to date, %d ready, %d available; %d exist", want, updated, ready, available, replicas)
}

func jobRollout(j *batchv1.Job, cond *metav1.Condition) {
	available := metav1.Condition{}
	jobAvailable(j, &available)
	switch {
	case available.Status != metav1.ConditionTrue:
		cond.Reason, cond.Message = available.Reason, available.Message
	case j.Status.Active > 0:
		cond.Reason, cond.Message = JobActiveReason, "the Job has not ended"
	default:
		cond.Status, cond.Reason = metav1.ConditionTrue, JobCompleteReason
	}
}
