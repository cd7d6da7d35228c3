package objectset

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/revision"
)

// remotePhase keeps the ObjectSetPhase of a phase with a class. When the rollout stopped before, it creates none, but pauses one that there is.
// It says whether the rollout stops here.
func (r *Reconciler) remotePhase(ctx context.Context, os *v1alpha1.ObjectSet, p *v1alpha1.ObjectSetTemplatePhase, stopped bool, out *observed) (bool, error) {
	osp := &v1alpha1.ObjectSetPhase{}
	key := client.ObjectKey{Namespace: os.Namespace, Name: revision.PhaseName(os.Name, p.Name)}
	err := r.Client.Get(ctx, key, osp)
	switch {
	case apierrors.IsNotFound(err) && stopped:
		return true, nil
	case apierrors.IsNotFound(err):
		osp = r.desiredPhase(os, p)
		err = r.Client.Create(ctx, osp, client.FieldOwner(v1alpha1.FieldOwner))
		if text, isViolation := phase.ViolationOf(err); isViolation && !apierrors.IsAlreadyExists(err) {
			out.violations = append(out.violations, phase.Violation{Position: fmt.Sprintf("Phase %q", p.Name), Errors: []string{text}})
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("creating ObjectSetPhase %s: %w", key, err)
		}
	case err != nil:
		return false, fmt.Errorf("reading ObjectSetPhase %s: %w", key, err)
	}
	if !metav1.IsControlledBy(osp, os) {
		out.violations = append(out.violations, phase.Violation{
			Position: fmt.Sprintf("Phase %q", p.Name), Errors: []string{fmt.Sprintf("ObjectSetPhase %s exists and is not controlled by this ObjectSet", key)},
		})
		return true, nil
	}
	if err := r.pausePhase(ctx, os, osp); err != nil {
		return false, err
	}
	out.sawPhase(os, osp)
	if stopped {
		return true, nil
	}
	if message := unavailable(osp); message != "" {
		out.failure = fmt.Sprintf("Phase %q failed: %s", p.Name, message)
		return true, nil
	}
	return false, nil
}

func (r *Reconciler) desiredPhase(os *v1alpha1.ObjectSet, p *v1alpha1.ObjectSetTemplatePhase) *v1alpha1.ObjectSetPhase {
	labels := maps.Clone(os.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.PhaseClassLabel] = p.Class
	objects := p.Objects
	if objects == nil {
		objects = []v1alpha1.ObjectSetObject{} // required, and null is not a list
	}
	return &v1alpha1.ObjectSetPhase{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: os.Namespace, Name: revision.PhaseName(os.Name, p.Name), Labels: labels, Annotations: maps.Clone(os.Annotations),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: r.Scope.Kind("ObjectSet"), Name: os.Name, UID: os.UID,
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: v1alpha1.ObjectSetPhaseSpec{
			Paused: os.Spec.LifecycleState == v1alpha1.LifecycleStatePaused, Revision: os.Spec.Revision,
			Previous: os.Spec.Previous, AvailabilityProbes: os.Spec.AvailabilityProbes, Objects: objects,
		},
	}
}

func (r *Reconciler) pausePhase(ctx context.Context, os *v1alpha1.ObjectSet, osp *v1alpha1.ObjectSetPhase) error {
	paused := os.Spec.LifecycleState == v1alpha1.LifecycleStatePaused
	if osp.Spec.Paused == paused {
		return nil
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": osp.ResourceVersion},
		"spec":     map[string]any{"paused": paused},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	answer := &v1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{Namespace: osp.Namespace, Name: osp.Name}}
	if err := r.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data), client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("pausing ObjectSetPhase %s: %w", client.ObjectKeyFromObject(osp), err)
	}
	*osp = *answer
	return nil
}

// sawPhase collects what an ObjectSetPhase reports.
func (out *observed) sawPhase(os *v1alpha1.ObjectSet, osp *v1alpha1.ObjectSetPhase) {
	out.remote = withPhase(out.remote, v1alpha1.RemotePhaseReference{Name: osp.Name, UID: osp.UID})
	out.mapped = append(out.mapped, Mapped(osp.Status.Conditions, osp.Generation, os.Generation)...)
	out.controllerOf = append(out.controllerOf, osp.Status.ControllerOf...)
	saidPaused := conditions.IsTrue(osp.Status.Conditions, v1alpha1.ConditionPaused)
	if saidPaused {
		out.remotePaused++
	}
	if !saidPaused || conditions.Current(osp.Status.Conditions, v1alpha1.ConditionPaused, osp.Generation) == nil {
		out.remoteActive++
	}
}

func withPhase(refs []v1alpha1.RemotePhaseReference, ref v1alpha1.RemotePhaseReference) []v1alpha1.RemotePhaseReference {
	out := slices.DeleteFunc(slices.Clone(refs), func(r v1alpha1.RemotePhaseReference) bool { return r.Name == ref.Name && r.UID != ref.UID })
	if !slices.Contains(out, ref) {
		out = append(out, ref)
	}
	return out
}

// unavailable is the message of an ObjectSetPhase that is not available, else "".
func unavailable(osp *v1alpha1.ObjectSetPhase) string {
	available := conditions.Current(osp.Status.Conditions, v1alpha1.ConditionAvailable, osp.Generation)
	switch {
	case available == nil:
		return "no status reported"
	case available.Status == metav1.ConditionTrue:
		return ""
	}
	return cmp.Or(available.Message, available.Reason, "it is not available, and does not say why")
}

// tearDownRemote says whether the ObjectSetPhase of a phase is gone.
func (r *Reconciler) tearDownRemote(ctx context.Context, os *v1alpha1.ObjectSet, name string) (bool, error) {
	osp := &v1alpha1.ObjectSetPhase{}
	key := client.ObjectKey{Namespace: os.Namespace, Name: revision.PhaseName(os.Name, name)}
	if err := r.Live.Get(ctx, key, osp); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("reading ObjectSetPhase %s: %w", key, err)
	}
	if !metav1.IsControlledBy(osp, os) {
		return true, nil
	}
	dying, err := r.namespaceDying(ctx, os)
	if err != nil {
		return false, err
	}
	if dying && len(osp.Finalizers) > 0 {
		// The cluster that its objects live in goes with the namespace, so its controller may wait forever.
		before := &v1alpha1.ObjectSetPhase{ObjectMeta: *osp.ObjectMeta.DeepCopy()}
		after := &v1alpha1.ObjectSetPhase{ObjectMeta: osp.ObjectMeta}
		after.Finalizers = nil
		if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
	}
	if osp.DeletionTimestamp.IsZero() {
		err := r.Client.Delete(ctx, osp, client.Preconditions{UID: ptr.To(osp.UID)})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return false, fmt.Errorf("deleting ObjectSetPhase %s: %w", key, err)
		}
	}
	if err := r.Live.Get(ctx, key, osp); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return false, nil
}

func (r *Reconciler) namespaceDying(ctx context.Context, os *v1alpha1.ObjectSet) (bool, error) {
	if os.Namespace == "" {
		return false, nil
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Live.Get(ctx, client.ObjectKey{Name: os.Namespace}, ns); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return ns.DeletionTimestamp != nil, nil
}
