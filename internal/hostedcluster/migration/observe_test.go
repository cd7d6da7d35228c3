package migration

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

func TestPrograms(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	ctx, ns := t.Context(), f.ns+"-a"
	f.add(t, "a", -1)
	d := f.program(t, ns, names.ClusterAPI, 0, 0)
	pod := func(t *testing.T, name string, phase corev1.PodPhase) *corev1.Pod {
		t.Helper()
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
		NewWithT(t).Expect(f.client.Create(ctx, p)).To(Succeed())
		p.Status.Phase = phase
		NewWithT(t).Expect(f.client.Status().Update(ctx, p)).To(Succeed())
		return p
	}
	seen := func(t *testing.T) Program {
		t.Helper()
		list, err := reader{Client: f.client}.programs(ctx, ns)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(list).To(HaveLen(1))
		return list[0]
	}
	t.Run("When pods of a program were evicted or have ended it should be gone: nobody removes them", func(t *testing.T) {
		g := NewWithT(t)
		pod(t, "evicted", corev1.PodFailed)
		pod(t, "ended", corev1.PodSucceeded)
		g.Expect(seen(t).Pods).To(BeZero())
		g.Expect(seen(t).gone()).To(BeTrue())
	})
	t.Run("When pods run, will run or can't be asked it should not be gone", func(t *testing.T) {
		pod(t, "runs", corev1.PodRunning)
		pod(t, "waits", corev1.PodPending)
		pod(t, "unreachable", corev1.PodUnknown)
		NewWithT(t).Expect(seen(t).Pods).To(Equal(3))
	})
}

func TestProgramOf(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int32
		status   appsv1.DeploymentStatus
		want     bool
	}{
		"When all replicas are available it should be available":                  {2, appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, true},
		"When one replica of the newest template is available that should do":     {3, appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 1}, true},
		"When only one of an older template may be available it should wait":      {2, appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}, false},
		"When none is available it should wait":                                   {1, appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 1, UpdatedReplicas: 1}, false},
		"When its controller has not seen the newest template yet it should wait": {1, appsv1.DeploymentStatus{ObservedGeneration: 6, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, false},
		"When nobody wants replicas it should not count as available":             {0, appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 7}, Spec: appsv1.DeploymentSpec{Replicas: &tc.replicas}, Status: tc.status}
			NewWithT(t).Expect(programOf(d, 0).Available).To(Equal(tc.want))
		})
	}
}
