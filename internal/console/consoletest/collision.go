package consoletest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// collision is Package metrics of production/sessions: a Service and a ServiceAccount that it has were there before it.
func (w *World) collision() {
	const ns, name = Production + "-sessions", "metrics"
	message := "object " + ns + "/metrics kind:Service: refusing adoption, object /v1, Kind=Service " + ns + "/metrics not owned by previous revision, object " +
		ns + "/scraper kind:ServiceAccount: refusing adoption, object /v1, Kind=ServiceAccount " + ns + "/scraper not owned by previous revision"
	w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "metrics", Labels: map[string]string{packagesv1.InstanceLabel: "monitoring"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: packagesv1.GroupVersion.String(), Kind: "ObjectSet", Name: "monitoring-5d9c", UID: "11111111-2222-3333-4444-555555555555", Controller: ptr.To(true)}}},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "metrics"}}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scraper", Annotations: map[string]string{"meta.helm.sh/release-name": "agent", "meta.helm.sh/release-namespace": "tools"}}})
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: packagesv1.PackageSpec{Image: "registry.example.com/addons/metrics:1.0.0"}}
	p.Status.Revision = 1
	w.set(&p.Status.Conditions, 8*time.Minute, packagesv1.ConditionAvailable, metav1.ConditionFalse, packagesv1.ReasonCollisionDetected, message)
	w.create(p)
	object := func(kind, objectName string) packagesv1.ObjectSetObject {
		return packagesv1.ObjectSetObject{Object: unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": objectName, "namespace": ns}}}}
	}
	labels := map[string]string{packagesv1.InstanceLabel: name}
	phases := []packagesv1.ObjectSetTemplatePhase{{Name: "access", Objects: []packagesv1.ObjectSetObject{object("ServiceAccount", "scraper"), object("ConfigMap", "targets")}}, {Name: "publish", Objects: []packagesv1.ObjectSetObject{object("Service", "metrics")}}}
	deployment := &packagesv1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: packagesv1.ObjectDeploymentSpec{Selector: metav1.LabelSelector{MatchLabels: labels},
		Template: packagesv1.ObjectSetTemplate{Metadata: metav1.ObjectMeta{Labels: labels}, Spec: packagesv1.ObjectSetTemplateSpec{Phases: phases, AvailabilityProbes: probes()}}}}
	w.set(&deployment.Status.Conditions, 8*time.Minute, packagesv1.ConditionAvailable, metav1.ConditionFalse, packagesv1.ReasonCollisionDetected, message)
	w.create(deployment)
	set := &packagesv1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + "-1", Labels: map[string]string{packagesv1.InstanceLabel: name, packagesv1.ObjectDeploymentLabel: name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: packagesv1.GroupVersion.String(), Kind: "ObjectDeployment", Name: name, UID: deployment.UID, Controller: ptr.To(true)}}},
		Spec: packagesv1.ObjectSetSpec{LifecycleState: packagesv1.LifecycleStateActive, Revision: 1, ObjectSetTemplateSpec: packagesv1.ObjectSetTemplateSpec{Phases: phases, AvailabilityProbes: probes()}}}
	w.set(&set.Status.Conditions, 8*time.Minute, packagesv1.ConditionAvailable, metav1.ConditionFalse, packagesv1.ReasonCollisionDetected, message)
	set.Status.Revision = 1
	w.create(set)
}
