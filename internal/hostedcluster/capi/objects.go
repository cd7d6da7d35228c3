package capi

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/platform"
)

// machinesDisabled tells that the user manages machines with something else.
func machinesDisabled(hc *hyperv1.HostedCluster) bool {
	_, disabled := hc.Annotations[hyperv1.DisableMachineManagement]
	return disabled
}

// Infrastructure is the platform's cluster object, nil when there is none to be. hcp may be nil.
func Infrastructure(p platform.Platform, hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) (client.Object, error) {
	if p == nil || machinesDisabled(hc) {
		return nil, nil
	}
	endpoint := hyperv1.APIEndpoint{}
	if hcp != nil {
		endpoint = hcp.Status.ControlPlaneEndpoint
	}
	return p.InfraCR(hc, names.NamespaceOf(hc), endpoint)
}

// Cluster is the Cluster that the machines belong to. Its endpoint is copied from the infrastructure by Cluster API itself.
func Cluster(hc *hyperv1.HostedCluster, infra client.Object) *clusterv1.Cluster {
	gvk := infra.GetObjectKind().GroupVersionKind()
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: hc.Spec.InfraID},
		Spec: clusterv1.ClusterSpec{
			Paused:            ptr.To(false),
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: hyperv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: hc.Name},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: infra.GetName()},
		},
	}
}

// Paused is the Cluster as it is, paused or not. It needs no platform: a cluster whose platform is not known, or not switched on any more, can be paused and
// resumed, too.
func Paused(live *clusterv1.Cluster, paused bool) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name},
		Spec: clusterv1.ClusterSpec{
			Paused: ptr.To(paused), ControlPlaneRef: live.Spec.ControlPlaneRef, InfrastructureRef: live.Spec.InfrastructureRef,
		},
	}
}

// Initialized tells whether Cluster API knows that the control plane has served: one controller looks at the field, others at the condition.
func Initialized(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false) &&
		conditions.IsTrue(cluster.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)
}

// MarkInitialized tells Cluster API that the control plane has served. It would look for that in a field of version v1beta2 of its contract,
// which a HostedControlPlane, whose schema is fixed, does not have. Cluster API itself never takes it back, nor a condition that is True.
func MarkInitialized(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, now time.Time) error {
	after := cluster.DeepCopy()
	after.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	conditions.Set(&after.Status.Conditions, now, metav1.Condition{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, ObservedGeneration: cluster.Generation,
		Reason: clusterv1.ClusterControlPlaneInitializedReason,
	})
	if err := patch.Status(ctx, c, cluster, after); err != nil {
		return fmt.Errorf("marking Cluster %s initialized: %w", client.ObjectKeyFromObject(cluster), err)
	}
	return nil
}
