package consoletest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// rollout is HostedClusterPackage addon, by tier: canary is done, gold is under way and one of it is down.
func (w *World) rollout() {
	owner := &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "logging-agent"}, Spec: packagesv1.HostedClusterPackageSpec{
		Strategy:              packagesv1.HostedClusterPackageStrategy{RollingUpgrade: &packagesv1.HostedClusterPackageStrategyRollingUpgrade{MaxUnavailable: 3}},
		Partition:             &packagesv1.HostedClusterPackagePartitionSpec{LabelKey: "tier", Order: &packagesv1.HostedClusterPackagePartitionOrderSpec{Static: []string{"canary", "bronze", "silver", "gold"}}},
		HostedClusterSelector: &metav1.LabelSelector{},
		Template:              packagesv1.PackageTemplateSpec{Spec: packagesv1.PackageSpec{Image: "registry.example.com/addons/logging-agent:2.4.0"}}}}
	w.set(&owner.Status.Conditions, 12*time.Minute, packagesv1.ConditionProgressing, metav1.ConditionTrue, "Progressing", "12/21 packages progressed. Group bronze is being changed: production/routing is down.")
	w.set(&owner.Status.Conditions, 2*time.Hour, packagesv1.ConditionAvailable, metav1.ConditionTrue, "Available", "18/21 packages are available.")
	owner.Status.ObservedGeneration, owner.Status.TotalPackages, owner.Status.UpdatedPackages, owner.Status.AvailablePackages, owner.Status.ProgressedPackages = 1, 21, 10, 18, 10
	for _, f := range fleet {
		p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns + "-" + f.name, Name: owner.Name}, Spec: packagesv1.PackageSpec{Image: "registry.example.com/addons/logging-agent:2.3.1"}}
		available, reason, message := metav1.ConditionTrue, "Available", "Object was rolled out successfully."
		switch {
		case f.ns == Staging, f.tier == "bronze" && f.name < "routing":
			p.Spec = owner.Spec.Template.Spec
		case f.name == "routing":
			p.Spec = owner.Spec.Template.Spec
			available, reason, message = metav1.ConditionFalse, "ProbeFailure", `Phase "deploy" failed: Deployment routing/logging-agent: condition "Available" == "True": 0 of 2 replicas are available`
		}
		p.Status.Revision = 2
		w.set(&p.Status.Conditions, 11*time.Minute, packagesv1.ConditionAvailable, available, reason, message)
		w.set(&p.Status.Conditions, 11*time.Minute, packagesv1.ConditionProgressing, metav1.ConditionFalse, "Idle", "")
		w.set(&p.Status.Conditions, time.Hour, packagesv1.ConditionUnpacked, metav1.ConditionTrue, "UnpackSuccess", "")
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].ObservedGeneration = 1
		}
		w.create(p)
		if f.name == "routing" {
			owner.Status.Processing = append(owner.Status.Processing, packagesv1.HostedClusterPackageRefStatus{UID: p.UID, Name: p.Name, Namespace: p.Namespace})
		}
	}
	w.create(owner)
	w.journal("HostedClusterPackage", "", owner.Name, [][5]string{{"2h", "Available", "", "True", "Available"}, {"2h", "Progressing", "", "False", "Idle"}, {"12m", "Progressing", "False", "True", "Progressing"}})
	done := &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "node-tuning"}, Spec: packagesv1.HostedClusterPackageSpec{Strategy: packagesv1.HostedClusterPackageStrategy{Instant: &packagesv1.HostedClusterPackageStrategyInstant{}},
		HostedClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "none"}}, Template: packagesv1.PackageTemplateSpec{Spec: packagesv1.PackageSpec{Image: "registry.example.com/addons/node-tuning:1.9.2"}}}}
	w.set(&done.Status.Conditions, 26*time.Hour, packagesv1.ConditionProgressing, metav1.ConditionFalse, "Idle", "14/14 packages progressed.")
	w.set(&done.Status.Conditions, 26*time.Hour, packagesv1.ConditionAvailable, metav1.ConditionTrue, "Available", "14/14 packages are available.")
	done.Status.ObservedGeneration, done.Status.TotalPackages, done.Status.UpdatedPackages, done.Status.AvailablePackages, done.Status.ProgressedPackages = 1, 14, 14, 14, 14
	w.create(done)
	held := &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "ingress", Annotations: map[string]string{packagesv1.RolloutPausedAnnotation: "true"}}, Spec: packagesv1.HostedClusterPackageSpec{
		Strategy: packagesv1.HostedClusterPackageStrategy{RollingUpgrade: &packagesv1.HostedClusterPackageStrategyRollingUpgrade{MaxUnavailable: 1}}, HostedClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		Template: packagesv1.PackageTemplateSpec{Spec: packagesv1.PackageSpec{Image: "registry.example.com/addons/ingress:0.31.0"}}}}
	w.set(&held.Status.Conditions, 40*time.Minute, packagesv1.ConditionProgressing, metav1.ConditionTrue, "Progressing", "2/5 packages progressed. It is paused.")
	held.Status.ObservedGeneration, held.Status.TotalPackages, held.Status.UpdatedPackages, held.Status.AvailablePackages = 1, 5, 2, 5
	w.create(held)
}

// revisions are those of Package logging-agent of production/routing: the newest fails in its second phase.
func (w *World) revisions() {
	const ns, name = Production + "-routing", "logging-agent"
	object := func(version, kind, objectName string, spec map[string]any) packagesv1.ObjectSetObject {
		u := unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": objectName, "namespace": ns}}}
		for k, v := range spec {
			u.Object[k] = v
		}
		return packagesv1.ObjectSetObject{Object: u}
	}
	phases := func(image string, more ...packagesv1.ObjectSetObject) []packagesv1.ObjectSetTemplatePhase {
		return []packagesv1.ObjectSetTemplatePhase{
			{Name: "rbac", Objects: []packagesv1.ObjectSetObject{object("v1", "ServiceAccount", name, nil), object("rbac.authorization.k8s.io/v1", "Role", name, nil)}},
			{Name: "deploy", Objects: append([]packagesv1.ObjectSetObject{object("apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{"replicas": int64(2), "template": map[string]any{"spec": map[string]any{"image": image}}}})}, more...)},
			{Name: "publish", Objects: []packagesv1.ObjectSetObject{object("v1", "Service", name, nil)}},
		}
	}
	deployment := &packagesv1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: packagesv1.ObjectDeploymentSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{packagesv1.InstanceLabel: name}},
		Template: packagesv1.ObjectSetTemplate{Metadata: metav1.ObjectMeta{Labels: map[string]string{packagesv1.InstanceLabel: name}}, Spec: packagesv1.ObjectSetTemplateSpec{Phases: phases("2.4.0"), AvailabilityProbes: probes()}}}}
	message := `Phase "deploy" failed: Deployment routing/logging-agent: condition "Available" == "True": 0 of 2 replicas are available`
	w.set(&deployment.Status.Conditions, 11*time.Minute, packagesv1.ConditionAvailable, metav1.ConditionFalse, "ProbeFailure", message)
	w.create(deployment)
	for i, image := range []string{"2.3.0", "2.3.1", "2.4.0"} {
		var more []packagesv1.ObjectSetObject
		if i == 2 {
			more = append(more, object("v1", "ConfigMap", name+"-filters", map[string]any{"data": map[string]any{"drop": "debug"}}))
		}
		set := &packagesv1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("%s-%d", name, i+1), Labels: map[string]string{packagesv1.InstanceLabel: name, packagesv1.ObjectDeploymentLabel: name},
			Annotations:     map[string]string{packagesv1.ChangeCauseAnnotation: "image " + image},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: packagesv1.GroupVersion.String(), Kind: "ObjectDeployment", Name: name, UID: deployment.UID, Controller: ptr.To(true)}}},
			Spec: packagesv1.ObjectSetSpec{LifecycleState: packagesv1.LifecycleStateArchived, Revision: int64(i + 1), ObjectSetTemplateSpec: packagesv1.ObjectSetTemplateSpec{Phases: phases(image, more...), AvailabilityProbes: probes()}}}
		switch i {
		case 0:
			w.set(&set.Status.Conditions, 5*time.Hour, "Archived", metav1.ConditionTrue, "Archived", "")
		case 1:
			set.Spec.LifecycleState = packagesv1.LifecycleStateActive
			w.set(&set.Status.Conditions, 2*time.Hour, packagesv1.ConditionAvailable, metav1.ConditionTrue, "Available", "")
		case 2:
			set.Spec.LifecycleState = packagesv1.LifecycleStateActive
			w.set(&set.Status.Conditions, 11*time.Minute, packagesv1.ConditionAvailable, metav1.ConditionFalse, "ProbeFailure", message)
			for _, ref := range [][2]string{{"ServiceAccount", ""}, {"Role", "rbac.authorization.k8s.io"}, {"Deployment", "apps"}} {
				set.Status.ControllerOf = append(set.Status.ControllerOf, packagesv1.ControlledObjectReference{Kind: ref[0], Group: ref[1], Name: name, Namespace: ns})
			}
		}
		set.Status.Revision = int64(i + 1)
		w.create(set)
	}
	w.journal("Package", ns, name, [][5]string{{"5h", "Available", "", "True", "Available"}, {"2h", "Progressing", "", "False", "Idle"}, {"11m", "Available", "True", "False", "ProbeFailure"}})
}

func probes() []packagesv1.ObjectSetProbe {
	return []packagesv1.ObjectSetProbe{{Selector: packagesv1.ProbeSelector{Kind: &packagesv1.PackageProbeKindSpec{Group: "apps", Kind: "Deployment"}}, Probes: []packagesv1.Probe{{Condition: &packagesv1.ProbeConditionSpec{Type: "Available", Status: "True"}}}}}
}
