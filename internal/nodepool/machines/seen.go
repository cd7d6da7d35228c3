package machines

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/conditions"
)

// ourKeys begin the keys of labels and annotations that passes read or write. Cluster API's controllers, autoscalers and users write others.
var ourKeys = []string{"hypershift.openshift.io/", "cluster.x-k8s.io/", "machine.openshift.io/", "capacity.cluster-autoscaler.kubernetes.io/"}

// Seen is what the passes of a NodePool read of an object of Cluster API, and what they would set back if somebody changed it. The functions of
// this package that are given such objects read no more.
func Seen(obj client.Object) any {
	meta := changes.MetaOf(obj, ourKeys...)
	switch o := obj.(type) {
	case *clusterv1.MachineDeployment:
		s := o.Status
		return []any{meta, o.Spec, s.ObservedGeneration, s.Replicas, s.AvailableReplicas, s.UpToDateReplicas, said(s.Conditions, clusterv1.AvailableCondition)}
	case *clusterv1.MachineSet:
		s := o.Status
		// What the controller of MachineDeployments made is its own: it counts from what machines are made, and how many there are.
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "MachineDeployment" {
			return []any{meta, o.Spec.Template.Annotations[hyperv1.NodePoolAnnotation], GenerationOf(&o.Spec.Template), o.Spec.Replicas, s.Replicas, s.AvailableReplicas}
		}
		return []any{meta, o.Spec, s.Replicas, s.AvailableReplicas, said(s.Conditions, clusterv1.AvailableCondition)}
	case *clusterv1.Machine:
		s, kubelet := o.Status, ""
		if s.NodeInfo != nil {
			kubelet = s.NodeInfo.KubeletVersion
		}
		return []any{meta, o.Spec.Bootstrap.DataSecretName, kubelet, s.Addresses, said(s.Conditions, clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineReadyCondition,
			clusterv1.MachineNodeHealthyCondition, clusterv1.MachineDeletingCondition)}
	case *clusterv1.MachineHealthCheck:
		return []any{meta, o.Spec, said(o.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)}
	}
	return changes.Content(obj)
}

// said is what conditions say, as it is repeated: without times, and without steps that are only counted.
func said(list []metav1.Condition, types ...string) []Finding {
	found := make([]Finding, len(types))
	for i, t := range types {
		if c := conditions.Get(list, t); c != nil {
			found[i] = Finding{c.Status, c.Reason, firstLine(c.Message)}
		}
	}
	return found
}
