package recovery

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var restored = time.Unix(1e9, 0)

func made(name string, at time.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: monitoring, Name: name, CreationTimestamp: metav1.NewTime(at)}
}

func claim(name string, at time.Time) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: made(name, at)}
}

func pod(name, claim string, at time.Time) corev1.Pod {
	p := corev1.Pod{ObjectMeta: made(name, at)}
	p.OwnerReferences = []metav1.OwnerReference{{UID: "prometheus", Controller: ptr.To(true)}}
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return p
}

func set(available int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: prometheus, UID: "prometheus"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2)},
		Status: appsv1.StatefulSetStatus{AvailableReplicas: available}}
}

func TestPlanFor(t *testing.T) {
	before, after := restored.Add(-time.Hour), restored.Add(time.Minute)
	going := claim("old", before)
	going.DeletionTimestamp = ptr.To(metav1.NewTime(after))
	others := pod("other", "old", before)
	others.OwnerReferences = nil
	deployment := func(available int32) appsv1.Deployment {
		return appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)}, Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
	}
	for name, tc := range map[string]struct {
		obs     Observed
		waiting string
		deletes []string
	}{
		"When Prometheus is available it should be finished":        {obs: Observed{Payload: true, Prometheus: set(2)}},
		"When there is no Prometheus it should wait for it":         {obs: Observed{Payload: true}, waiting: "there is no StatefulSet openshift-monitoring/prometheus-k8s"},
		"When Prometheus waits for old volumes it should lose them": {obs: Observed{Payload: true, Prometheus: set(1), Claims: []corev1.PersistentVolumeClaim{claim("old", before), claim("new", after)}, Pods: []corev1.Pod{pod("p-0", "old", before), pod("p-1", "new", after)}}, waiting: "1 of 2 pods of StatefulSet openshift-monitoring/prometheus-k8s are available", deletes: []string{"old", "p-0"}},
		"When a volume is going already it should only take the pod that keeps it": {obs: Observed{Payload: true, Prometheus: set(0), Claims: []corev1.PersistentVolumeClaim{going}, Pods: []corev1.Pod{pod("p-0", "old", after)}},
			waiting: "0 of 2 pods of StatefulSet openshift-monitoring/prometheus-k8s are available", deletes: []string{"p-0"}},
		"When everything is new it should delete nothing": {obs: Observed{Payload: true, Prometheus: set(0), Claims: []corev1.PersistentVolumeClaim{claim("new", restored)}, Pods: []corev1.Pod{pod("p-0", "new", after), others}},
			waiting: "0 of 2 pods of StatefulSet openshift-monitoring/prometheus-k8s are available"},
		"When nodes don't answer it should say how many":      {obs: Observed{Nodes: 5, NotReady: 2}, waiting: "2 of 5 nodes of the backup are not ready; delete those that are gone for good"},
		"When deployments are missing it should say how many": {obs: Observed{Nodes: 1, System: []appsv1.Deployment{deployment(1), deployment(0)}}, waiting: "1 of 2 deployments in kube-system are not available"},
		"When everything runs it should be finished":          {obs: Observed{Nodes: 1, System: []appsv1.Deployment{deployment(1)}}},
		"When there are no nodes it should be finished":       {obs: Observed{System: []appsv1.Deployment{deployment(0)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			tc.obs.Restored = restored
			plan := PlanFor(tc.obs)
			g.Expect(plan.Waiting).To(Equal(tc.waiting))
			var names []string
			for _, o := range plan.Delete {
				names = append(names, o.GetName())
			}
			g.Expect(names).To(Equal(tc.deletes))
			c := Condition(plan)
			g.Expect(c.Reason).To(Equal("RecoveryFinished"))
			g.Expect(c.Status == metav1.ConditionTrue).To(Equal(tc.waiting == ""))
		})
	}
}

func TestApply(t *testing.T) {
	t.Run("When a hosted cluster was restored it should lose the volumes of the backup once, and be whole when Prometheus runs", func(t *testing.T) {
		g := NewWithT(t)
		c := testenv.Start(t).Client(t, clientgoscheme.Scheme)
		ctx := t.Context()
		hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))}}
		look := func() Plan {
			obs, err := Observe(ctx, c, hcp, true)
			g.Expect(err).NotTo(HaveOccurred())
			plan := PlanFor(obs)
			g.Expect(Apply(ctx, c, plan)).To(Succeed())
			return plan
		}
		g.Expect(look().Waiting).To(ContainSubstring("there is no StatefulSet"))
		g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: monitoring}})).To(Succeed())
		labels := map[string]string{"app": "prometheus"}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		workload := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring, Name: prometheus}, Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}
		g.Expect(c.Create(ctx, workload)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(t.Context(), workload) })
		data := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring, Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
		g.Expect(c.Create(ctx, data)).To(Succeed())
		member := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring, Name: prometheus + "-0", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: prometheus, UID: workload.UID, Controller: ptr.To(true)}}}, Spec: template.Spec}
		member.Spec.AutomountServiceAccountToken = ptr.To(false)
		g.Expect(c.Create(ctx, member)).To(Succeed())
		g.Expect(look().Delete).To(HaveLen(2))
		g.Expect(apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(member), member))).To(BeTrue())
		err := c.Get(ctx, client.ObjectKeyFromObject(data), data) // a finalizer may hold it until the pod is gone
		g.Expect(apierrors.IsNotFound(err) || !data.DeletionTimestamp.IsZero()).To(BeTrue())

		workload.Status = appsv1.StatefulSetStatus{ObservedGeneration: workload.Generation, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		g.Expect(c.Status().Update(ctx, workload)).To(Succeed())
		g.Expect(look()).To(Equal(Plan{}))
	})
	t.Run("When another object has the name meanwhile it should stay", func(t *testing.T) {
		g := NewWithT(t)
		env := testenv.Start(t)
		c, ns := env.Client(t, clientgoscheme.Scheme), env.Namespace(t)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x"}}
		g.Expect(c.Create(t.Context(), cm)).To(Succeed())
		other := cm.DeepCopy()
		other.UID = types.UID("another")
		g.Expect(Apply(t.Context(), c, Plan{Delete: []client.Object{other}})).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
	})
}
