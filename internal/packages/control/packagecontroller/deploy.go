package packagecontroller

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/render"
	"hcp.internal/platform/internal/packages/engine/slice"
)

// ErrForeign is returned by deploy for an ObjectDeployment that belongs to somebody else.
var ErrForeign = errors.New("belongs to somebody else: delete it, or give the package another name")

// desired is the ObjectDeployment of a Package.
func (r *Reconciler) desired(p *v1alpha1.Package, got *result) *v1alpha1.ObjectDeployment {
	labels := render.Labels(got.pkg, p.Name)
	config := "null"
	if p.Spec.Config != nil && len(p.Spec.Config.Raw) > 0 {
		config = string(p.Spec.Config.Raw)
	}
	return &v1alpha1.ObjectDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, Labels: labels,
			Annotations: map[string]string{
				v1alpha1.PackageSourceImageAnnotation:  r.Rewrite.Prefix(p.Spec.Image),
				v1alpha1.PackageSourceDigestAnnotation: got.digest,
				v1alpha1.PackageConfigAnnotation:       config,
				v1alpha1.ChangeCauseAnnotation:         fmt.Sprintf("Installing %s package.", got.pkg.Manifest.Name),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: r.Scope.Kind("Package"), Name: p.Name, UID: p.UID,
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: v1alpha1.ObjectDeploymentSpec{
			Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: v1alpha1.ObjectSetTemplate{Metadata: metav1.ObjectMeta{Labels: labels}, Spec: got.template},
			Paused:   p.Spec.Paused,
		},
	}
}

// merged is an existing ObjectDeployment with what a new one brings: limits, pause and selector stay.
func merged(existing, want *v1alpha1.ObjectDeployment) *v1alpha1.ObjectDeployment {
	out := existing.DeepCopy()
	cause := changeCause(existing.Annotations, want.Annotations)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	maps.Copy(out.Labels, want.Labels)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	maps.Copy(out.Annotations, want.Annotations)
	out.Annotations[v1alpha1.ChangeCauseAnnotation] = cause
	out.Spec.Template.Spec = want.Spec.Template.Spec
	return out
}

// changeCause says why there is a new revision.
func changeCause(before, after map[string]string) string {
	image := before[v1alpha1.PackageSourceImageAnnotation] != after[v1alpha1.PackageSourceImageAnnotation]
	config := before[v1alpha1.PackageConfigAnnotation] != after[v1alpha1.PackageConfigAnnotation]
	switch {
	case image && config:
		return "Package source image and config changed."
	case image:
		return "Package source image changed."
	case config:
		return "Package config changed."
	}
	if cause, ok := before[v1alpha1.ChangeCauseAnnotation]; ok {
		return cause
	}
	return after[v1alpha1.ChangeCauseAnnotation]
}

// deploy writes the ObjectDeployment and its slices, and returns it as it is then. known is p's status as the API server has it.
func (r *Reconciler) deploy(ctx context.Context, p *v1alpha1.Package, got *result, known *v1alpha1.PackageStatus) (*v1alpha1.ObjectDeployment, error) {
	want := r.desired(p, got)
	strategy := slice.Strategy(p.Annotations[v1alpha1.ChunkingStrategyAnnotation])
	existing := &v1alpha1.ObjectDeployment{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), existing)
	if apierrors.IsNotFound(err) {
		if err := r.startOver(ctx, p, known); err != nil {
			return nil, err
		}
		return r.create(ctx, want, strategy)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the deployment: %w", err)
	}
	if !metav1.IsControlledBy(existing, p) {
		return nil, fmt.Errorf("%s %s %w", r.Scope.Kind("ObjectDeployment"), client.ObjectKeyFromObject(want), ErrForeign)
	}
	return r.update(ctx, existing, want, strategy)
}

// startOver takes back that a Package is unpacked whose deployment is gone. The new one is empty at first: if the process died then, the hash would say that
// there is nothing to do, and it would stay empty.
func (r *Reconciler) startOver(ctx context.Context, p *v1alpha1.Package, known *v1alpha1.PackageStatus) error {
	if p.Status.UnpackedHash == "" {
		return nil
	}
	p.Status.UnpackedHash = ""
	r.set(p, begun(newRevision))
	if err := r.Status.Patch(ctx, p, *known, p.Status); err != nil {
		return err
	}
	*known = *p.Status.DeepCopy()
	return nil
}

// create makes the deployment. Slices belong to it, so if there are some it comes first, without phases.
func (r *Reconciler) create(ctx context.Context, want *v1alpha1.ObjectDeployment, strategy slice.Strategy) (*v1alpha1.ObjectDeployment, error) {
	first := want.DeepCopy()
	cut := false
	plan, err := slice.Plan(strategy, want.Spec.Template.Spec.Phases)
	if err != nil {
		return nil, err
	}
	for _, chunks := range plan {
		cut = cut || chunks != nil
	}
	if cut {
		first.Spec.Template.Spec.Phases = nil
	}
	if err := r.Client.Create(ctx, first, client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return nil, fmt.Errorf("creating the deployment: %w", err)
	}
	if !cut {
		return first, nil
	}
	return r.update(ctx, first, want, strategy)
}

func (r *Reconciler) update(ctx context.Context, existing, want *v1alpha1.ObjectDeployment, strategy slice.Strategy) (*v1alpha1.ObjectDeployment, error) {
	slicer := slice.Slicer{Scope: r.Scope, Client: r.Client}
	template, err := slicer.Cut(ctx, existing, strategy, want.Spec.Template.Spec)
	if err != nil {
		return nil, fmt.Errorf("cutting phases: %w", err)
	}
	want.Spec.Template.Spec = template
	out := merged(existing, want)
	// With its resourceVersion: somebody else's change in between is a conflict, and all of it is looked at again.
	if err := r.Client.Update(ctx, out, client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return nil, fmt.Errorf("updating the deployment: %w", err)
	}
	if err := slicer.Collect(ctx, out); err != nil {
		return nil, fmt.Errorf("removing old slices: %w", err)
	}
	return out, nil
}

// refused tells whether the API server does not take what a package gives, which another attempt alone does not change: it is said where people look.
func refused(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// unmet are the constraints that don't hold.
func (r *Reconciler) unmet(ctx context.Context, p *v1alpha1.Package, loaded *load.Package, env manifests.PackageEnvironment) ([]string, error) {
	others := false
	if render.UsesUniqueness(loaded.Manifest) {
		list := &v1alpha1.ObjectDeploymentList{}
		if err := r.Client.List(ctx, list, client.InNamespace(p.Namespace), client.MatchingLabels{v1alpha1.PackageLabel: loaded.Manifest.Name}); err != nil {
			return nil, fmt.Errorf("listing deployments of %s: %w", loaded.Manifest.Name, err)
		}
		for i := range list.Items {
			others = others || list.Items[i].Name != p.Name
		}
	}
	return render.Unmet(loaded.Manifest, env, others), nil
}
