package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

func TestRecovery(t *testing.T) {
	t.Run("When a member of etcd crashes a Job should replace it, be reported, and be gone when it has done", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		w.run(t, w.env.Config, func(r *Reconciler) { r.EtcdRecovery = true })
		hc := w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable })
		g.Expect(w.client.Create(t.Context(), hc)).To(Succeed())
		ns := names.NamespaceOf(hc)
		g.Eventually(func() error {
			return w.client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: hc.Name}, &hyperv1.HostedControlPlane{})
		}, patience, often).Should(Succeed())
		g.Eventually(w.condition(t.Context(), hc.Name, hyperv1.EtcdRecoveryActive), patience, often).Should(Equal("False/AsExpected"))

		set := w.etcd(t, ns)
		for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
			w.member(t, ns, name, name == "etcd-2")
		}
		set.Status = appsv1.StatefulSetStatus{Replicas: 3, ReadyReplicas: 2, ObservedGeneration: set.Generation}
		g.Expect(w.client.Status().Update(t.Context(), set)).To(Succeed())

		job := &batchv1.Job{}
		key := client.ObjectKey{Namespace: ns, Name: "etcd-recovery"}
		g.Eventually(func() error { return w.client.Get(t.Context(), key, job) }, patience, often).Should(Succeed())
		g.Eventually(w.condition(t.Context(), hc.Name, hyperv1.EtcdRecoveryActive), patience, often).Should(Equal("True/AsExpected"))
		pod := job.Spec.Template.Spec
		g.Expect(pod.Containers[0].Command).To(Equal([]string{"/usr/bin/hypershift-operator", "recover-etcd", "run"}))
		g.Expect(pod.Containers[0].Args).To(ContainElement("--namespace=" + ns))
		g.Expect(pod.ServiceAccountName).To(Equal("etcd-recovery-sa"))
		g.Expect(job.Labels).To(And(HaveKeyWithValue("hypershift.openshift.io/cluster-name", hc.Name), HaveKeyWithValue("hypershift.openshift.io/cluster-namespace", hc.Namespace)))
		for _, obj := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
			name := "etcd-recovery"
			if _, ok := obj.(*corev1.ServiceAccount); ok {
				name += "-sa"
			}
			g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, obj)).To(Succeed())
		}

		now := metav1.Now()
		job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
		g.Expect(w.client.Status().Update(t.Context(), job)).To(Succeed())
		set.Status.ReadyReplicas = 3
		g.Expect(w.client.Status().Update(t.Context(), set)).To(Succeed())
		for obj, name := range map[client.Object]string{&batchv1.Job{}: "etcd-recovery", &rbacv1.Role{}: "etcd-recovery", &rbacv1.RoleBinding{}: "etcd-recovery", &corev1.ServiceAccount{}: "etcd-recovery-sa"} {
			g.Eventually(w.missing(t.Context(), obj, ns, name), patience, often).Should(Succeed())
		}
		g.Eventually(w.condition(t.Context(), hc.Name, hyperv1.EtcdRecoveryActive), patience, often).Should(Equal("False/AsExpected"))
	})
}

// etcd plays the control-plane-operator: nobody else makes the StatefulSet here.
func (w *world) etcd(t *testing.T, ns string) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "etcd", Labels: map[string]string{names.ManagedByLabel: names.ControlPlaneOperator}},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "etcd"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "etcd"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}}}},
	}
	if err := w.client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return set
}

// member plays kubelet.
func (w *world) member(t *testing.T, ns, name string, crashes bool) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app": "etcd"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "etcd", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), RunAsNonRoot: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}}}},
	}
	if err := w.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	status := corev1.ContainerStatus{Name: "etcd", Ready: !crashes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ready := corev1.ConditionTrue
	if crashes {
		ready, status.RestartCount = corev1.ConditionFalse, 2
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if err := w.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}
