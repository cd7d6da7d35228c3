package component

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployed is a Deployment of three replicas, of which so many are up to date and ready.
func deployed(updated, ready int32, conds ...appsv1.DeploymentCondition) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	d.Spec.Replicas = ptr.To[int32](3)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: ready, Conditions: conds,
	}
	return d
}

func members(replicas, available int32) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{}
	s.Spec.Replicas = &replicas
	s.Status = appsv1.StatefulSetStatus{Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: available, AvailableReplicas: available}
	return s
}

func job(active int32, conds ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{Status: batchv1.JobStatus{Active: active, Conditions: conds}}
}

func available(status corev1.ConditionStatus) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: status, Message: "minimum not reached"}
}

func TestConditions(t *testing.T) {
	stale := deployed(3, 3, available("True"))
	stale.Generation = 3
	asleep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0)}}
	done := batchv1.JobCondition{Type: batchv1.JobComplete, Status: "True"}
	failed := batchv1.JobCondition{Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded", Message: "3 times"}
	ok := AsExpectedReason
	for name, tc := range map[string]struct {
		live      client.Object
		written   bool // just now, so that live is from before
		missing   []string
		err, ops  error
		available string // reason; AsExpected means True
		complete  string
		message   string // of RolloutComplete
	}{
		"When there is no workload it should say so":                                   {available: NotFoundReason, complete: NotFoundReason, message: "does not exist"},
		"When it waits for others it should name them":                                 {missing: []string{"etcd", "kube-apiserver"}, available: NotFoundReason, complete: WaitingForDependenciesReason, message: "Waiting for Dependencies: etcd, kube-apiserver"},
		"When it serves while it waits it should be available":                         {live: deployed(3, 3, available("True")), missing: []string{"etcd"}, available: ok, complete: WaitingForDependenciesReason, message: "etcd"},
		"When a Deployment is complete it should be as expected":                       {live: deployed(3, 3, available("True")), available: ok, complete: ok},
		"When a Deployment has no condition yet it should not be found":                {live: deployed(0, 0), available: NotFoundReason, complete: WaitingForRolloutCompleteReason, message: "of 3 replicas, 0 are up to date, 0 ready"},
		"When a Deployment has just been made without replicas it should be available": {live: asleep, available: ok, complete: WaitingForRolloutCompleteReason, message: "not been picked up"},
		"When a Deployment is not available it should be waited for":                   {live: deployed(3, 1, available("False")), available: WaitingForAvailableReason, complete: WaitingForRolloutCompleteReason, message: "1 ready"},
		"When some replicas are old it should not be complete":                         {live: deployed(2, 3, available("True")), available: ok, complete: WaitingForRolloutCompleteReason, message: "2 are up to date"},
		"When the controller has not seen the newest it should be waited for":          {live: stale, available: ok, complete: WaitingForRolloutCompleteReason, message: "not been picked up"},
		"When the read is from before the write it should not be complete":             {live: deployed(3, 3, available("True")), written: true, available: ok, complete: WaitingForRolloutCompleteReason, message: "just been written"},
		"When operands are missing it should wait for them":                            {live: deployed(3, 3, available("True")), ops: errors.New("deployment x is not ready"), available: ok, complete: WaitingForOperandsReason, message: "x is not ready"},
		"When reconciling failed it should say why before anything else":               {live: deployed(3, 3, available("True")), missing: []string{"etcd"}, err: errors.New("no image"), available: ok, complete: ReconciliationErrorReason, message: "no image"},
		"When one of three members serves etcd should be available":                    {live: members(3, 1), available: ok, complete: WaitingForRolloutCompleteReason, message: "1 ready"},
		"When no member serves etcd should not be available":                           {live: members(3, 0), available: WaitingForAvailableReason, complete: WaitingForRolloutCompleteReason, message: "0 ready"},
		"When a StatefulSet is scaled to nothing it should be available":               {live: members(0, 0), available: ok, complete: ok},
		"When it is a CronJob it should be as expected":                                {live: &batchv1.CronJob{}, available: ok, complete: ok},
		"When a Job runs it should be available but not complete":                      {live: job(1), available: ok, complete: JobActiveReason, message: "not ended"},
		"When a Job has ended it should be complete":                                   {live: job(0, done), available: ok, complete: JobCompleteReason},
		"When a Job has failed it should give its reason":                              {live: job(0, failed), available: "BackoffLimitExceeded", complete: "BackoffLimitExceeded", message: "3 times"},
		"When a Job has not begun it should be unknown":                                {live: job(0), available: JobUnknownReason, complete: JobUnknownReason, message: "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := observation{live: tc.live, current: !tc.written, missing: tc.missing, reconciled: tc.err, operands: tc.ops}
			a, r := availableCondition(obs), rolloutCondition(obs)
			g.Expect(a.Type).To(Equal(Available))
			g.Expect(a.Reason).To(Equal(tc.available))
			g.Expect(a.Status == metav1.ConditionTrue).To(Equal(tc.available == ok))
			g.Expect(r.Type).To(Equal(RolloutComplete))
			g.Expect(r.Reason).To(Equal(tc.complete))
			g.Expect(r.Status == metav1.ConditionTrue).To(Equal(tc.complete == ok || tc.complete == JobCompleteReason))
			g.Expect(r.Message).To(ContainSubstring(tc.message))
			g.Expect(r.Status == metav1.ConditionFalse).To(Equal(r.Message != ""), "a condition that is not met says why")
		})
	}
}
