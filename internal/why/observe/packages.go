package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/why"
)

// pkg reads a Package with what it is made into.
func (r *run) pkg(ctx context.Context, of why.Object) error {
	p := &packagesv1.Package{}
	if err := r.get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, p); err != nil {
		return err
	}
	r.add(func(s *why.Snapshot) { s.Packages = append(s.Packages, *p) })
	r.go1(func() {
		od := &packagesv1.ObjectDeployment{}
		if err := r.get(ctx, client.ObjectKeyFromObject(p), od); err != nil {
			r.unread("ObjectDeployment", err)
			return
		}
		r.add(func(s *why.Snapshot) { s.ObjectDeployments = append(s.ObjectDeployments, *od) })
	})
	return r.packageSpace(ctx, of.Namespace)
}

func (r *run) objectDeployment(ctx context.Context, of why.Object) error {
	od := &packagesv1.ObjectDeployment{}
	if err := r.get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, od); err != nil {
		return err
	}
	r.add(func(s *why.Snapshot) { s.ObjectDeployments = append(s.ObjectDeployments, *od) })
	return r.packageSpace(ctx, of.Namespace)
}

// inPackage reads the namespace of a revision.
func (r *run) inPackage(ctx context.Context, of why.Object) error {
	if err := r.get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, &packagesv1.ObjectSet{}); err != nil {
		return err
	}
	return r.packageSpace(ctx, of.Namespace)
}

// packageSpace reads what packages have made in a namespace, the control plane that may be there, and the package operator's.
func (r *run) packageSpace(ctx context.Context, ns string) error {
	r.revisions(ctx, ns)
	r.operators(ctx, r.PackageOperatorNamespace)
	space := &corev1.Namespace{}
	if err := r.get(ctx, client.ObjectKey{Name: ns}, space); err != nil {
		return err
	}
	owner, ok := names.ParseBackReference(space.Annotations[hyperv1.HostedClusterAnnotation])
	if !ok {
		r.workloads(ctx, ns)
		r.warnings(ctx, ns, "", "")
		return nil
	}
	hc := &hyperv1.HostedCluster{}
	if err := r.get(ctx, owner, hc); err != nil {
		r.unread("HostedCluster", err)
		r.controlPlane(ctx, ns, owner.Name)
		return nil
	}
	r.around(ctx, hc)
	return nil
}

func (r *run) revisions(ctx context.Context, ns string) {
	list(r, ctx, "ObjectSet", &packagesv1.ObjectSetList{}, func(s *why.Snapshot, l *packagesv1.ObjectSetList) { s.ObjectSets = append(s.ObjectSets, l.Items...) }, client.InNamespace(ns))
	list(r, ctx, "ObjectSetPhase", &packagesv1.ObjectSetPhaseList{}, func(s *why.Snapshot, l *packagesv1.ObjectSetPhaseList) {
		s.ObjectSetPhases = append(s.ObjectSetPhases, l.Items...)
	}, client.InNamespace(ns))
}

// fleet reads a HostedClusterPackage and the Packages that it is changing, the first of them as Package would.
func (r *run) fleet(ctx context.Context, of why.Object) error {
	p := &packagesv1.HostedClusterPackage{}
	if err := r.get(ctx, client.ObjectKey{Name: of.Name}, p); err != nil {
		return err
	}
	r.add(func(s *why.Snapshot) { s.HostedClusterPackages = append(s.HostedClusterPackages, *p) })
	r.operators(ctx, r.PackageOperatorNamespace)
	r.warnings(ctx, "default", "HostedClusterPackage", of.Name) // where events of cluster-scoped objects are
	refs := slices.Clone(p.Status.Processing)
	if len(refs) == 0 {
		refs = r.notWell(ctx, p)
	}
	for _, ref := range refs[:min(len(refs), maxFleet)] {
		r.go1(func() { r.oneOfFleet(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}) })
	}
	return nil
}

// notWell are the Packages of a rollout that isn't changing any: those that hold it.
func (r *run) notWell(ctx context.Context, owner *packagesv1.HostedClusterPackage) []packagesv1.HostedClusterPackageRefStatus {
	all := &packagesv1.PackageList{}
	var out []packagesv1.HostedClusterPackageRefStatus
	for err := range read.Pages(ctx, bounded{r.Client}, all, pageSize) {
		if err != nil {
			r.unread("Package", err)
			return out
		}
		for i := range all.Items {
			p := &all.Items[i]
			owned := slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
			if owned && !wellPackage(p) {
				out = append(out, packagesv1.HostedClusterPackageRefStatus{UID: p.UID, Name: p.Name, Namespace: p.Namespace})
			}
		}
		if len(out) >= maxFleet {
			break
		}
	}
	return out
}

func (r *run) oneOfFleet(ctx context.Context, key client.ObjectKey) {
	p, od := &packagesv1.Package{}, &packagesv1.ObjectDeployment{}
	if err := r.get(ctx, key, p); err != nil {
		r.unread("Package", fmt.Errorf("of the rollout: %w", err))
		return
	}
	r.add(func(s *why.Snapshot) { s.Packages = append(s.Packages, *p) })
	if err := r.get(ctx, key, od); err != nil {
		r.unread("ObjectDeployment", err)
		return
	}
	r.add(func(s *why.Snapshot) { s.ObjectDeployments = append(s.ObjectDeployments, *od) })
	r.revisions(ctx, key.Namespace)
	r.workloads(ctx, key.Namespace)
	hcps := &hyperv1.HostedControlPlaneList{}
	if err := r.page(ctx, hcps, client.InNamespace(key.Namespace)); err != nil {
		r.unread("HostedControlPlane", err)
		return
	}
	r.add(func(s *why.Snapshot) { s.HostedControlPlanes = append(s.HostedControlPlanes, hcps.Items...) })
}

func wellPackage(p *packagesv1.Package) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, packagesv1.ConditionAvailable) && !meta.IsStatusConditionTrue(p.Status.Conditions, packagesv1.ConditionPaused)
}
