package nodepool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/platform"
)

// apply carries a plan out. Each write stands on those before it, so the first failure ends the pass, and the next one goes on there.
func (r *Reconciler) apply(ctx context.Context, obs *observed, p *plan) error {
	a := apply.New(r.Client, names.HypershiftOperator)
	if err := errors.Join(r.setPaused(ctx, p.pause, ptr.To("true")), r.setPaused(ctx, p.unpause, nil)); err != nil {
		return err
	}
	if p.createToken != nil {
		// Created and not applied: two passes must not choose two tokens.
		if err := r.Client.Create(ctx, p.createToken, client.FieldOwner(names.HypershiftOperator)); err != nil {
			return fmt.Errorf("creating Secret %s: %w", client.ObjectKeyFromObject(p.createToken), err)
		}
		ctrl.LoggerFrom(ctx).Info("made a token for machines", "secret", p.createToken.Name)
	}
	for _, s := range p.patches {
		if err := r.patchSecret(ctx, obs.namespace, s); err != nil {
			return err
		}
	}
	if err := a.All(ctx, p.apply...); err != nil {
		return err
	}
	if err := errors.Join(r.makeCompanions(ctx, a, p.companions), r.keepImages(ctx, obs, p)); err != nil {
		return err
	}
	if t := p.createTemplate; t != nil {
		if err := a.Create(ctx, t); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if err := r.applyWorkload(ctx, a, obs, p); err != nil {
		return err
	}
	if err := r.applyRetag(ctx, p); err != nil {
		return err
	}
	after := a.All(ctx, p.after...)
	if after != nil && refused(after) == nil {
		return after
	}
	// What was refused stays as it is until somebody changes what it is made from, and nothing stands on it.
	for _, obj := range p.delete {
		if err := a.Delete(ctx, obj); err != nil {
			return errors.Join(after, err)
		}
	}
	return errors.Join(after, r.annotate(ctx, obs.pool, p.annotations))
}

// makeCompanions makes what a machine template refers to. What is there stays as it is: another pool may have made it, and the two need not take turns.
func (r *Reconciler) makeCompanions(ctx context.Context, a *apply.Applier, list []client.Object) error {
	for _, obj := range list {
		have := &metav1.PartialObjectMetadata{}
		have.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
		found, err := r.get(ctx, client.ObjectKeyFromObject(obj), have)
		if err != nil {
			return err
		}
		if found {
			continue
		}
		if err := a.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// keepImages has the platform make and remove boot images. It comes before the template that names one.
func (r *Reconciler) keepImages(ctx context.Context, obs *observed, p *plan) error {
	keeper, ok := obs.platform.(platform.ImageKeeper)
	if !ok || p.kept == nil {
		return nil
	}
	if !p.kept.There {
		if err := keeper.KeepImage(ctx, r.Client, r.Live, obs.machineInput()); err != nil {
			return err
		}
	}
	if len(p.unkept) == 0 {
		return nil
	}
	return keeper.DropImages(ctx, r.Client, r.Live, obs.pool, p.unkept)
}

// applyRetag changes machines that exist. It is a patch of one field: the rest is the provider's. All are tried.
func (r *Reconciler) applyRetag(ctx context.Context, p *plan) error {
	if len(p.retag) == 0 {
		return nil
	}
	var content any = map[string]any{"spec": map[string]any{p.retagTo.Field: nil}}
	kind := types.MergePatchType
	if p.retagTo.Value != nil { // a merge would keep keys that are gone
		content, kind = []map[string]any{{"op": "add", "path": "/spec/" + p.retagTo.Field, "value": p.retagTo.Value}}, types.JSONPatchType
	}
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding %s of machines: %w", p.retagTo.Field, err)
	}
	var errs []error
	for _, m := range p.retag {
		apply.Count(p.retagTo.Kind.Kind, "patch", names.HypershiftOperator)
		err := r.Client.Patch(ctx, m.DeepCopyObject().(client.Object), client.RawPatch(kind, body), client.FieldOwner(names.HypershiftOperator))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("changing %s of %s %s: %w", p.retagTo.Field, p.retagTo.Kind.Kind, client.ObjectKeyFromObject(m), err))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) applyWorkload(ctx context.Context, a *apply.Applier, obs *observed, p *plan) error {
	if p.markCurrent != "" {
		if err := r.markCurrent(ctx, obs, p.markCurrent); err != nil {
			return err
		}
		// The MachineSet has a new version now, which the next pass sees.
		p.recheckAfter = outcome.Soon
		return nil
	}
	switch {
	case p.createSet != nil:
		return a.Create(ctx, p.createSet)
	case p.workload != nil && p.locked:
		return a.ApplyLocked(ctx, p.workload)
	case p.workload != nil:
		return a.Apply(ctx, p.workload)
	}
	return nil
}

// setPaused sets or removes the annotation that stops Cluster API. It is a patch of this one key, because it comes and goes.
func (r *Reconciler) setPaused(ctx context.Context, list []client.Object, value *string) error {
	for _, obj := range list {
		target := obj.DeepCopyObject().(client.Object)
		if err := r.Client.Patch(ctx, target, patch.Annotation(machines.PausedAnnotation, value), client.FieldOwner(names.HypershiftOperator)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("pausing %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
		}
	}
	return nil
}

// abandon marks machines of a cluster that goes.
func (r *Reconciler) abandon(ctx context.Context, list []*clusterv1.Machine) error {
	annotations := map[string]string{}
	for _, name := range abandonedAnnotations {
		annotations[name] = ""
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("encoding annotations: %w", err)
	}
	var errs []error
	for _, m := range list {
		err := r.Client.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(names.HypershiftOperator))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("sparing Machine %s its drain: %w", client.ObjectKeyFromObject(m), err))
		}
	}
	return errors.Join(errs...)
}

// markCurrent notes what machines have on the MachineSet, which must be the one that was read: others write this annotation, too.
func (r *Reconciler) markCurrent(ctx context.Context, obs *observed, hash string) error {
	mark := patch.Metadata{ResourceVersion: obs.set.ResourceVersion, Annotations: map[string]*string{hyperv1.NodePoolCurrentConfigVersionAnnotation: &hash}}
	if err := r.Client.Patch(ctx, obs.set.DeepCopy(), mark.Patch(), client.FieldOwner(names.HypershiftOperator)); err != nil {
		return fmt.Errorf("noting the configuration of machines on MachineSet %s: %w", client.ObjectKeyFromObject(obs.set), err)
	}
	return nil
}

func (r *Reconciler) patchSecret(ctx context.Context, namespace string, s secretPatch) error {
	body, err := s.body()
	if err != nil {
		return fmt.Errorf("encoding a patch of Secret %s: %w", s.name, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.name}}
	if err := r.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, body), client.FieldOwner(names.HypershiftOperator)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching Secret %s/%s: %w", namespace, s.name, err)
	}
	return nil
}

// annotate writes the bookkeeping on the NodePool, and nothing when it is there already.
func (r *Reconciler) annotate(ctx context.Context, pool *hyperv1.NodePool, annotations map[string]string) error {
	changed := false
	before := pool.DeepCopy()
	for k, v := range annotations {
		if pool.Annotations[k] != v {
			if pool.Annotations == nil {
				pool.Annotations = map[string]string{}
			}
			pool.Annotations[k], changed = v, true
		}
	}
	if !changed {
		return nil
	}
	status := pool.Status.DeepCopy()
	if err := r.Client.Patch(ctx, pool, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotating NodePool %s: %w", keyOf(pool), err)
	}
	pool.Status = *status
	if hash, ok := annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]; ok {
		ctrl.LoggerFrom(ctx).Info("every machine is up to date", "hash", hash)
	}
	return nil
}
