package hostedclusterpackage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// historyLimit is how many templates are remembered, the newest and the good one included.
const historyLimit = 10

// Revision is a template that a HostedClusterPackage had.
type Revision struct {
	Number int64
	Hash   string
	template
	Completed *time.Time // when the whole fleet had it and was available; nil when it never was

	object appsv1.ControllerRevision
}

// lastGood is the index of the last template that was completed and is not the one of hash; -1 when there is none.
func lastGood(history []Revision, hash string) int {
	for i, rev := range slices.Backward(history) {
		if rev.Completed != nil && rev.Hash != hash {
			return i
		}
	}
	return -1
}

// proven tells that the template of hash is the newest of a history and was up in the whole fleet. One that comes back has yet to show that again.
func proven(history []Revision, hash string) bool {
	i := slices.IndexFunc(history, func(rev Revision) bool { return rev.Hash == hash })
	return i >= 0 && history[i].Completed != nil && history[i].Number == history[len(history)-1].Number
}

// History reads which templates a HostedClusterPackage had, the oldest first. namespace is the operator's.
func History(ctx context.Context, c client.Reader, namespace string, owner *packagesv1.HostedClusterPackage) ([]Revision, error) {
	var list appsv1.ControllerRevisionList
	err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{OwnerLabel: string(owner.UID)})
	if err != nil {
		return nil, fmt.Errorf("listing the history of %s: %w", owner.Name, err)
	}
	var out []Revision
	for _, o := range list.Items {
		r := Revision{Number: o.Revision, object: o}
		if err := json.Unmarshal(o.Data.Raw, &r.template); err != nil {
			continue // somebody else's; it says nothing about our templates
		}
		if r.Hash, err = r.template.hash(); err != nil {
			continue
		}
		if t, err := time.Parse(time.RFC3339, o.Annotations[CompletedAnnotation]); err == nil {
			r.Completed = &t
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// remember makes the template the newest of the history, and says what the pass needs of the rest.
func (r *Reconciler) remember(ctx context.Context, owner *packagesv1.HostedClusterPackage, t template, hash string) (past, error) {
	if p, ok := r.memory.get(owner, hash); ok {
		return p, nil
	}
	if r.Namespace == "" {
		p := past{hash: hash, unkept: true}
		r.memory.put(owner, p)
		return p, nil
	}
	list, err := History(ctx, r.Live, r.Namespace, owner)
	if err == nil && len(list) == 0 {
		list, err = r.inherit(ctx, owner)
	}
	if err != nil {
		return past{}, err
	}
	p := past{hash: hash, completed: proven(list, hash)}
	good := lastGood(list, hash)
	if good >= 0 {
		p.good = &list[good].template
	}
	var newest int64
	if len(list) > 0 {
		newest = list[len(list)-1].Number
	}
	i := slices.IndexFunc(list, func(rev Revision) bool { return rev.Hash == hash })
	switch {
	case i < 0:
		err = r.create(ctx, owner, t, hash, newest+1)
	case list[i].Number != newest:
		// A template that comes back is the newest again, and has yet to show that it is good.
		again := list[i].object.DeepCopy()
		again.Revision = newest + 1
		delete(again.Annotations, CompletedAnnotation)
		err = r.Client.Patch(ctx, again, client.MergeFromWithOptions(&list[i].object, client.MergeFromWithOptimisticLock{}), FieldOwner)
	}
	if apierrors.IsConflict(err) {
		return past{}, errNotTheNewest
	}
	if noPlace(err) {
		ctrl.LoggerFrom(ctx).Info("the history of templates isn't kept: the operator's namespace is missing", "namespace", r.Namespace)
		return past{hash: hash, unkept: true}, nil
	}
	if apierrors.IsAlreadyExists(err) {
		return past{}, r.nameTaken(ctx, owner, hash)
	}
	if err != nil {
		return past{}, fmt.Errorf("recording the template: %w", err)
	}
	if err := r.prune(ctx, list, good); err != nil {
		return past{}, err
	}
	r.memory.put(owner, p)
	return p, nil
}

// noPlace tells that the operator's namespace isn't there, or on its way out. Rollouts go on without a history: it is of use when one fails, and no
// reason for none to begin.
func noPlace(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// inherit takes over the history that a HostedClusterPackage of the same name left when it was deleted with --cascade=orphan. Nobody else would ever
// look at it or remove it, and its names are those that we need.
func (r *Reconciler) inherit(ctx context.Context, owner *packagesv1.HostedClusterPackage) ([]Revision, error) {
	var list appsv1.ControllerRevisionList
	if err := r.Live.List(ctx, &list, client.InNamespace(r.Namespace), client.HasLabels{OwnerLabel}); err != nil {
		return nil, fmt.Errorf("listing histories that were left behind: %w", err)
	}
	found := 0
	for i := range list.Items {
		o := &list.Items[i]
		var t template
		if len(o.OwnerReferences) > 0 || json.Unmarshal(o.Data.Raw, &t) != nil {
			continue
		}
		if hash, err := t.hash(); err != nil || o.Name != revisionName(owner.Name, hash) {
			continue
		}
		after := o.DeepCopy()
		after.Labels[OwnerLabel] = string(owner.UID)
		after.OwnerReferences = historyOf(owner)
		if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{}), FieldOwner); err != nil {
			return nil, fmt.Errorf("taking over a template of the history that was left behind: %w", err)
		}
		found++
	}
	if found == 0 {
		return nil, nil
	}
	return History(ctx, r.Live, r.Namespace, owner)
}

// nameTaken says why the history can't be written. What has the name is ours when another process was faster, or garbage that is about to be collected;
// anything else stays until a person removes it.
func (r *Reconciler) nameTaken(ctx context.Context, owner *packagesv1.HostedClusterPackage, hash string) error {
	name := revisionName(owner.Name, hash)
	o := &appsv1.ControllerRevision{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, o); ignoreNotFound(err) != nil {
		return fmt.Errorf("reading the history of %s: %w", owner.Name, err)
	}
	if _, ours := o.Labels[OwnerLabel]; ours || o.Name == "" {
		return errNotTheNewest
	}
	return fmt.Errorf("ControllerRevision %s/%s is somebody else's, and its name is needed for the history of this HostedClusterPackage: delete it", r.Namespace, name)
}

// historyOf makes a revision go with its HostedClusterPackage.
func historyOf(owner *packagesv1.HostedClusterPackage) []metav1.OwnerReference {
	ref := ownerReference(owner)
	ref.BlockOwnerDeletion = ptr.To(false)
	return []metav1.OwnerReference{ref}
}

func (r *Reconciler) create(ctx context.Context, owner *packagesv1.HostedClusterPackage, t template, hash string, number int64) error {
	data, err := t.encode()
	if err != nil {
		return err
	}
	return r.Client.Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: revisionName(owner.Name, hash), Labels: map[string]string{OwnerLabel: string(owner.UID)},
			OwnerReferences: historyOf(owner),
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}, FieldOwner)
}

// revisionName keeps within the 253 characters that a name may have.
func revisionName(owner, hash string) string {
	return owner[:min(len(owner), 253-1-len(hash))] + "-" + hash
}

// prune removes the oldest, except the one to return to.
func (r *Reconciler) prune(ctx context.Context, list []Revision, good int) error {
	for i, rev := range list {
		if len(list)-i < historyLimit {
			return nil
		}
		if i == good {
			continue
		}
		if err := r.Client.Delete(ctx, &rev.object); ignoreNotFound(err) != nil {
			return fmt.Errorf("removing an old template: %w", err)
		}
	}
	return nil
}

// complete notes that the fleet has the template and is available.
func (r *Reconciler) complete(ctx context.Context, owner *packagesv1.HostedClusterPackage, p past) error {
	if p.completed || p.unkept {
		return nil
	}
	rev := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: revisionName(owner.Name, p.hash)}}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		CompletedAnnotation: r.Clock.Now().UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		return err
	}
	if err := r.Client.Patch(ctx, rev, client.RawPatch(types.MergePatchType, data), FieldOwner); err != nil {
		r.memory.forget(owner.Name) // somebody removed it: it is made again
		return fmt.Errorf("recording that the rollout is complete: %w", err)
	}
	p.completed = true
	r.memory.put(owner, p)
	return nil
}
