package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/platform"
)

// Storage finds out, and notes on HostedClusters, where their objects of Cluster API are stored.
type Storage struct {
	Client client.Client
	Live   client.Reader // uncached
	// Direct reaches the management cluster under the names that are stored there, uncached; nil: nobody looks at these.
	Direct   client.Reader
	Clock    clock.PassiveClock
	Operator scope.Identity
}

// Settle tells whether a hosted cluster is ours, after it has found out what is not clear from its annotations. What is not ours gets no
// more than condition PrivateCAPITypes.
func (r Storage) Settle(ctx context.Context, hc *hyperv1.HostedCluster) (ours bool, err error) {
	switch owns := r.Operator.Owns(hc.Annotations); owns {
	case scope.Ours:
		return true, nil
	case scope.Unclaimed, scope.Contradictory:
		hcp, err := read.Optional(ctx, r.Live, client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}, &hyperv1.HostedControlPlane{})
		if err != nil {
			return false, err
		}
		standard, err := r.standsInStandard(ctx, hc)
		if err != nil {
			return false, err
		}
		change := claim(hc, hcp, evidence{machines: HasMachines(hc), standard: standard})
		if owns == scope.Contradictory {
			ctrl.LoggerFrom(ctx).Info("Invalid annotation state detected", "repair", change)
		}
		if len(change) == 0 && owns == scope.Unclaimed && !hc.DeletionTimestamp.IsZero() {
			// Nothing is adopted any more, and its NodePools wait for somebody who says that they are theirs.
			change[hyperv1.PrivateCAPITypesAnnotation] = "true"
		}
		if len(change) == 0 {
			return true, nil // adopt says that it is private, together with everything else
		}
		return false, r.annotate(ctx, hc, change)
	}
	if err := r.acknowledge(ctx, hc); err != nil {
		return false, err
	}
	return false, r.reportStorage(ctx, hc)
}

// acknowledge says once that no pass of ours is under way about a hosted cluster that is locked.
func (r Storage) acknowledge(ctx context.Context, hc *hyperv1.HostedCluster) error {
	lock := r.Operator.Acknowledges(hc.Annotations)
	if lock == "" || hc.Annotations[hyperv1.PrivateCAPIMigrationAckAnnotation] == lock {
		return nil
	}
	if err := r.Client.Patch(ctx, hc, patch.Annotation(hyperv1.PrivateCAPIMigrationAckAnnotation, &lock)); err != nil {
		return fmt.Errorf("acknowledging the lock of HostedCluster %s: %w", names.BackReference(hc), err)
	}
	return nil
}

// HasMachines is false on platforms where there is nothing of Cluster API to be stored.
func HasMachines(hc *hyperv1.HostedCluster) bool {
	p, err := platform.For(hc.Spec.Platform.Type)
	if err != nil || machinesDisabled(hc) {
		return false
	}
	infra, err := p.InfraCR(hc, names.NamespaceOf(hc), hyperv1.APIEndpoint{})
	return err != nil || infra != nil
}

// evidence is what shows, besides a HostedControlPlane, where a hosted cluster's objects of Cluster API are.
type evidence struct {
	machines bool // it has, or may have, such objects
	standard bool // there are some in the standard groups
}

// claim is what annotations have to become (nil: removed) on a hosted cluster that doesn't say, or says twice, where its objects of Cluster API
// are; nothing if it may be taken on as private. The evidence is its HostedControlPlane, nil when there is none: it has the annotation from
// before the first of these objects exists, and never loses it. Where it is gone already, or machines were disabled since, the objects
// themselves are.
func claim(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane, found evidence) map[string]any {
	own := hcp != nil && hcp.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(hc)
	private := own && hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
	legacy := !private && (own && found.machines || found.standard)
	change := map[string]any{}
	if legacy {
		if hc.Annotations[hyperv1.HostedClusterScopeAnnotation] != hyperv1.LegacyScope {
			change[hyperv1.HostedClusterScopeAnnotation] = hyperv1.LegacyScope
		}
		if _, has := hc.Annotations[hyperv1.PrivateCAPITypesAnnotation]; has {
			change[hyperv1.PrivateCAPITypesAnnotation] = nil
		}
		return change
	}
	if hc.Annotations[hyperv1.HostedClusterScopeAnnotation] == hyperv1.LegacyScope {
		change[hyperv1.HostedClusterScopeAnnotation] = nil
		change[hyperv1.PrivateCAPITypesAnnotation] = "true"
	}
	return change
}

// standsInStandard tells whether a hosted cluster has a Cluster in the standard group, which our own client doesn't see with private types.
// Without a right to look there is none: who installs private types keeps that right for as long as hosted clusters need standard ones.
func (r Storage) standsInStandard(ctx context.Context, hc *hyperv1.HostedCluster) (bool, error) {
	if r.Direct == nil {
		return false, nil
	}
	clusters := &metav1.PartialObjectMetadataList{}
	clusters.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
	err := r.Direct.List(ctx, clusters, client.InNamespace(names.NamespaceOf(hc)))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for Clusters of HostedCluster %s in the standard group: %w", names.BackReference(hc), err)
	}
	return slices.ContainsFunc(clusters.Items, func(c metav1.PartialObjectMetadata) bool {
		return c.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(hc)
	}), nil
}

// annotate changes annotations in one patch, which fails if the object is not the one that was looked at.
func (r Storage) annotate(ctx context.Context, hc *hyperv1.HostedCluster, change map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": hc.ResourceVersion, "annotations": change}})
	if err != nil {
		return err
	}
	if err := r.Client.Patch(ctx, hc, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("annotating HostedCluster %s: %w", names.BackReference(hc), err)
	}
	ctrl.LoggerFrom(ctx).Info("noted where objects of Cluster API are stored", "annotations", change)
	return nil
}

// reportStorage keeps condition PrivateCAPITypes of a hosted cluster that the operator for private types leaves to another.
func (r Storage) reportStorage(ctx context.Context, hc *hyperv1.HostedCluster) error {
	scope := hc.Annotations[hyperv1.HostedClusterScopeAnnotation]
	migrating := hc.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true"
	if !r.Operator.PrivateCAPI || r.Operator.Scope != nil || (scope != hyperv1.LegacyScope && !migrating) {
		return nil // the condition is another operator's
	}
	before := hc.DeepCopy()
	conditions.Set(&hc.Status.Conditions, r.Clock.Now(), StorageCondition(hc))
	return patch.Status(ctx, r.Client, before, hc)
}

// StorageCondition is condition PrivateCAPITypes.
func StorageCondition(hc *hyperv1.HostedCluster) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		c := conditions.New(hyperv1.PrivateCAPITypes, status, reason, message)
		c.ObservedGeneration = hc.Generation
		return c
	}
	failed, veto := hc.Annotations[hyperv1.PrivateCAPIMigrationFailedAnnotation]
	switch {
	case hc.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true":
		return is(metav1.ConditionUnknown, hyperv1.MigratingReason, "The objects of Cluster API are being moved to HyperShift's own groups; nothing else is changed meanwhile")
	case hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true":
		return is(metav1.ConditionTrue, hyperv1.PrivateTypesInUseReason, "The objects of Cluster API are stored in groups *.cluster.hypershift.openshift.io")
	case veto:
		return is(metav1.ConditionFalse, hyperv1.MigrationFailedReason,
			fmt.Sprintf("Moving the objects of Cluster API to HyperShift's own groups was rolled back (%.64q): remove annotation %s to try again", failed, hyperv1.PrivateCAPIMigrationFailedAnnotation))
	case hc.Annotations[hyperv1.HostedClusterScopeAnnotation] != hyperv1.LegacyScope:
		return is(metav1.ConditionFalse, hyperv1.ForeignScopeReason, "The hosted cluster is looked after by an operator with another scope")
	default:
		return is(metav1.ConditionFalse, hyperv1.AwaitingMigrationReason,
			"The objects of Cluster API are stored in groups *.cluster.x-k8s.io, from before private types were installed; Deployment operator-legacy looks after them")
	}
}
