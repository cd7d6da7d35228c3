package recovery

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func jobThat(kinds ...batchv1.JobConditionType) *batchv1.Job {
	job := &batchv1.Job{}
	for _, kind := range kinds {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	return job
}

func setWith(ready int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.StatefulSetStatus{ReadyReplicas: ready}}
}

func TestRecoveryState(t *testing.T) {
	for name, tc := range map[string]struct {
		etcd Etcd
		want state
		cond string
	}{
		"When all is well there should be nothing to do":                        {etcd: Etcd{set: setWith(3), pods: 3}, want: stateIdle, cond: "False/AsExpected"},
		"When a member is not ready but does not crash it should wait":          {etcd: Etcd{set: setWith(2), pods: 3}, want: stateIdle, cond: "False/AsExpected"},
		"When a member crashes it should start a Job":                           {etcd: Etcd{set: setWith(2), pods: 3, failing: []string{"etcd-1"}}, want: stateDue, cond: "False/AsExpected"},
		"When the members are not all there it should wait":                     {etcd: Etcd{set: setWith(1), pods: 2, failing: []string{"etcd-1"}}, want: stateIdle, cond: "False/AsExpected"},
		"When the Job works it should be active":                                {etcd: Etcd{set: setWith(2), pods: 3, failing: []string{"etcd-1"}, job: jobThat()}, want: stateRuns, cond: "True/AsExpected"},
		"When the Job has done it should be cleared away":                       {etcd: Etcd{set: setWith(3), job: jobThat(batchv1.JobComplete)}, want: stateOutlived, cond: "False/AsExpected"},
		"When the Job failed a person should look":                              {etcd: Etcd{set: setWith(2), pods: 3, failing: []string{"etcd-1"}, job: jobThat(batchv1.JobFailed)}, want: stateFailed, cond: "False/EtcdRecoveryJobFailed"},
		"When the Job failed and etcd is whole again it should be cleared away": {etcd: Etcd{set: setWith(3), job: jobThat(batchv1.JobFailed)}, want: stateOutlived, cond: "False/AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tc.etcd.name = "etcd"
			g.Expect(tc.etcd.state()).To(Equal(tc.want))
			c := Active([]Etcd{tc.etcd})
			g.Expect(string(c.Status) + "/" + c.Reason).To(Equal(tc.cond))
		})
	}
}

func TestRecoverableEtcds(t *testing.T) {
	g := NewWithT(t)
	spec := &hyperv1.HostedClusterSpec{Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{
		Shards: []hyperv1.ManagedEtcdShard{{Name: "events", Replicas: 1}, {Name: "pods", Replicas: 3}}}}}
	g.Expect(recoverable(spec)).To(Equal([]string{"etcd-pods"}))
	spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
	g.Expect(recoverable(spec)).To(Equal([]string{"etcd", "etcd-pods"}))
	spec.Etcd.ManagementType = hyperv1.Unmanaged
	g.Expect(recoverable(spec)).To(BeEmpty())
	g.Expect(jobOf("etcd")).To(Equal("etcd-recovery"))
	g.Expect(jobOf("etcd-pods")).To(Equal("etcd-recovery-pods"))
}
