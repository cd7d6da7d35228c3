package objectdeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/revision"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
)

// Reconciler keeps the revisions of the ObjectDeployments of one scope. It is the only writer of their status, creates ObjectSets, and changes
// what they do.
type Reconciler struct {
	Scope scope.Scope
	// Client reads from a cache with the index of IndexOwners, and writes. What it reads is not changed.
	Client client.Client
	// Live reads without a cache.
	Live  client.Reader
	Clock clock.PassiveClock
	// Status writes the status of this scope's ObjectDeployments.
	Status *status.Writer
	// Events tells of rollouts and pauses.
	Events status.Events

	// hashes are those of templates, by the name of the ObjectDeployment, which is all that is known of one that is gone; computing one takes longer
	// than all the rest of a quiet pass.
	hashes sync.Map
}

// hashed is what a hash was computed from. One that was deleted and made anew begins at generation 1 again, so the UID tells it apart.
type hashed struct {
	uid        types.UID
	generation int64
	collisions int32
	hash       string
}

// retryCollision is how long a name that was taken waits for the count of collisions to come back through the cache.
const retryCollision = 100 * time.Millisecond

// patience is how long a new revision has to say how it is, before it is reported that nobody knows. One needs a tenth of a second, the last of
// some hundreds that are rolled out at once about ten; and each that needs less than this saves a write.
const patience = 15 * time.Second

// soonKnown says whether the newest revision is so young that it has not reported yet.
func (o observed) soonKnown(now time.Time) bool {
	current := o.current()
	return current != nil && conditions.Get(current.Status.Conditions, v1alpha1.ConditionAvailable) == nil &&
		now.Sub(current.CreationTimestamp.Time) < patience+time.Second // the timestamp has no fractions of a second
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	read := &v1alpha1.ObjectDeployment{}
	if err := r.Client.Get(ctx, req.NamespacedName, read); err != nil {
		if apierrors.IsNotFound(err) {
			r.hashes.Delete(req.NamespacedName)
			r.Status.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !read.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes the revisions, and each tears itself down
	}
	if wait := r.Status.Wait(read); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	// The spec is the cache's, and only read. The rest is a copy.
	d := &v1alpha1.ObjectDeployment{ObjectMeta: *read.ObjectMeta.DeepCopy(), Spec: read.Spec, Status: *read.Status.DeepCopy()}
	obs, err := r.observe(ctx, req.NamespacedName, d)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := planFor(obs)
	err = r.carryOut(ctx, p)
	if p.create != nil {
		switch result, createErr := r.create(ctx, obs, p.create); {
		case createErr != nil:
			err = errors.Join(err, createErr)
		case result == created:
			// Its event comes at once, most often with more to report than that it is there.
			return ctrl.Result{}, err
		case result == taken:
			d.Status.CollisionCount = ptr.To(ptr.Deref(read.Status.CollisionCount, 0) + 1)
			return ctrl.Result{RequeueAfter: retryCollision}, errors.Join(err, r.report(ctx, read, d))
		}
	}
	now := r.Clock.Now()
	if err == nil && obs.soonKnown(now) {
		return ctrl.Result{RequeueAfter: patience}, nil
	}
	obs.report(r.Scope.Kind("ObjectSet"), now)
	return ctrl.Result{}, errors.Join(err, r.report(ctx, read, d))
}

func (r *Reconciler) report(ctx context.Context, before, after *v1alpha1.ObjectDeployment) error {
	if err := r.Status.Patch(ctx, after, before.Status, after.Status); err != nil {
		return err
	}
	r.Events.Transitions(after, before.Status.Conditions, after.Status.Conditions)
	return nil
}

func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey, d *v1alpha1.ObjectDeployment) (observed, error) {
	obs := observed{deployment: d, kind: r.Scope.Kind("ObjectDeployment"), hash: r.hash(key, d)}
	selector, err := metav1.LabelSelectorAsSelector(&d.Spec.Selector)
	if err != nil {
		return obs, fmt.Errorf("spec.selector of %s: %w", key, err)
	}
	for _, controller := range []string{string(d.UID), noController} {
		list := &v1alpha1.ObjectSetList{}
		err := r.Client.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingFields{controllerIndex: controller}, client.MatchingLabelsSelector{Selector: selector})
		if err != nil {
			return obs, fmt.Errorf("listing revisions of %s: %w", key, err)
		}
		for i := range list.Items {
			obs.sets = append(obs.sets, &list.Items[i])
		}
	}
	slices.SortFunc(obs.sets, func(a, b *v1alpha1.ObjectSet) int {
		if a.Spec.Revision != b.Spec.Revision {
			return int(a.Spec.Revision - b.Spec.Revision)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return obs, nil
}

func (r *Reconciler) hash(key client.ObjectKey, d *v1alpha1.ObjectDeployment) string {
	collisions := int32(-1)
	if d.Status.CollisionCount != nil {
		collisions = *d.Status.CollisionCount
	}
	if known, ok := r.hashes.Load(key); ok {
		if h := known.(hashed); h.uid == d.UID && h.generation == d.Generation && h.collisions == collisions {
			return h.hash
		}
	}
	hash := revision.TemplateHash(d.Spec.Template, d.Status.CollisionCount)
	r.hashes.Store(key, hashed{d.UID, d.Generation, collisions, hash})
	return hash
}

// creation is how the creation of a revision ended.
type creation int

const (
	created creation = iota
	// present: it was there already, and the cache doesn't know yet.
	present
	// taken: something else has its name.
	taken
)

func (r *Reconciler) create(ctx context.Context, obs observed, set *v1alpha1.ObjectSet) (creation, error) {
	made := set.DeepCopy()
	err := r.Client.Create(ctx, made, client.FieldOwner(v1alpha1.FieldOwner))
	if err == nil {
		r.Events.Tell(obs.deployment, made, corev1.EventTypeNormal, v1alpha1.ReasonProgressing, "RollOut",
			fmt.Sprintf("Rolling out revision %d, %s %s.", made.Spec.Revision, r.Scope.Kind("ObjectSet"), made.Name))
		ctrl.LoggerFrom(ctx).Info("created revision", "objectSet", set.Name, "revision", set.Spec.Revision)
		return created, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return taken, fmt.Errorf("creating revision %s: %w", set.Name, err)
	}
	there := &v1alpha1.ObjectSet{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(set), there); err != nil {
		return taken, fmt.Errorf("reading revision %s: %w", set.Name, err)
	}
	if there.Spec.LifecycleState != v1alpha1.LifecycleStateArchived && there.Spec.Revision >= set.Spec.Revision &&
		metav1.IsControlledBy(there, obs.deployment) && equality.Semantic.DeepEqual(there.Spec.ObjectSetTemplateSpec, set.Spec.ObjectSetTemplateSpec) {
		return present, nil
	}
	return taken, nil
}

func (r *Reconciler) carryOut(ctx context.Context, p plan) error {
	var errs []error
	for _, change := range p.lifecycle {
		errs = append(errs, r.setLifecycle(ctx, change))
	}
	for _, os := range p.remove {
		err := r.Client.Delete(ctx, os, client.Preconditions{UID: ptr.To(os.UID)})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting revision %s: %w", os.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) setLifecycle(ctx context.Context, change lifecycle) error {
	metadata := map[string]any{"resourceVersion": change.set.ResourceVersion}
	if change.byParent != nil {
		annotation := map[string]any{v1alpha1.PausedByParentAnnotation: nil}
		if *change.byParent != "" {
			annotation[v1alpha1.PausedByParentAnnotation] = *change.byParent
		}
		metadata["annotations"] = annotation
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"lifecycleState": change.state}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: change.set.Namespace, Name: change.set.Name}}
	answer.SetGroupVersionKind(r.Scope.GroupVersionKind("ObjectSet"))
	err = r.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data), client.FieldOwner(v1alpha1.FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("making revision %s %s: %w", change.set.Name, change.state, err)
	}
	return nil
}
