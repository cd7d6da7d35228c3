package observe

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/why"
)

// maxSpaces is in how many namespaces the workloads of a cluster-scoped package are looked at.
const maxSpaces = 5

// clusterPackage reads a ClusterPackage and what it consists of, as packages without a namespace.
func (r *run) clusterPackage(ctx context.Context, of why.Object) error {
	p := &packagesv1.ClusterPackage{}
	if err := r.get(ctx, client.ObjectKey{Name: of.Name}, p); err != nil {
		return err
	}
	r.add(func(s *why.Snapshot) {
		s.Packages = append(s.Packages, packagesv1.Package{ObjectMeta: unscoped(p.ObjectMeta), Spec: p.Spec, Status: p.Status})
	})
	r.go1(func() {
		if err := r.clusterDeployment(ctx, of.Name); err != nil {
			r.unread("ClusterObjectDeployment", err)
		}
	})
	r.clusterRevisions(ctx)
	return nil
}

// clusterObjectDeployment reads a ClusterObjectDeployment and what it consists of.
func (r *run) clusterObjectDeployment(ctx context.Context, of why.Object) error {
	if err := r.clusterDeployment(ctx, of.Name); err != nil {
		return err
	}
	r.clusterRevisions(ctx)
	return nil
}

func (r *run) clusterDeployment(ctx context.Context, name string) error {
	od := &packagesv1.ClusterObjectDeployment{}
	if err := r.get(ctx, client.ObjectKey{Name: name}, od); err != nil {
		return err
	}
	r.add(func(s *why.Snapshot) {
		s.ObjectDeployments = append(s.ObjectDeployments, packagesv1.ObjectDeployment{ObjectMeta: unscoped(od.ObjectMeta), Spec: od.Spec, Status: od.Status})
	})
	return nil
}

// clusterRevisions reads revisions and phases, the workloads that they made, and the operator.
func (r *run) clusterRevisions(ctx context.Context) {
	r.go1(func() {
		sets := &packagesv1.ClusterObjectSetList{}
		if err := r.page(ctx, sets); err != nil {
			r.unread("ClusterObjectSet", err)
			return
		}
		var spaces []string
		for i := range sets.Items {
			o := &sets.Items[i]
			r.add(func(s *why.Snapshot) {
				s.ObjectSets = append(s.ObjectSets, packagesv1.ObjectSet{ObjectMeta: unscoped(o.ObjectMeta), Spec: o.Spec, Status: o.Status})
			})
			for _, ref := range o.Status.ControllerOf {
				if ref.Namespace != "" && !slices.Contains(spaces, ref.Namespace) && len(spaces) < maxSpaces {
					spaces = append(spaces, ref.Namespace)
				}
			}
		}
		for _, ns := range spaces {
			r.workloads(ctx, ns)
		}
	})
	list(r, ctx, "ClusterObjectSetPhase", &packagesv1.ClusterObjectSetPhaseList{}, func(s *why.Snapshot, l *packagesv1.ClusterObjectSetPhaseList) {
		for i := range l.Items {
			o := &l.Items[i]
			s.ObjectSetPhases = append(s.ObjectSetPhases, packagesv1.ObjectSetPhase{ObjectMeta: unscoped(o.ObjectMeta), Spec: o.Spec, Status: o.Status})
		}
	})
	r.operators(ctx, r.PackageOperatorNamespace)
}

// unscoped is metadata whose owners bear the names of the kinds with a namespace.
func unscoped(meta metav1.ObjectMeta) metav1.ObjectMeta {
	meta.OwnerReferences = slices.Clone(meta.OwnerReferences)
	for i := range meta.OwnerReferences {
		meta.OwnerReferences[i].Kind = strings.TrimPrefix(meta.OwnerReferences[i].Kind, "Cluster")
	}
	return meta
}
