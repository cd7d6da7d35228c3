package objectset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/packages/engine/owner"
)

// newer says whether the controller of an object is a newer revision than os, or an ObjectSetPhase of one. All others with a higher number are strangers:
// each deployment counts for itself.
func (r *Reconciler) newer(ctx context.Context, os *v1alpha1.ObjectSet, controller owner.Entry) (bool, error) {
	if controller.GroupKind().Group != v1alpha1.GroupVersion.Group {
		return false, nil
	}
	if controller.Kind == r.Scope.Kind("ObjectSetPhase") {
		osp := &v1alpha1.ObjectSetPhase{}
		found, err := r.find(ctx, os.Namespace, controller.Name, controller.UID, osp)
		parent := metav1.GetControllerOfNoCopy(osp)
		if !found || err != nil || parent == nil {
			return false, err
		}
		controller = owner.Entry{APIVersion: parent.APIVersion, Kind: parent.Kind, Name: parent.Name, UID: parent.UID}
	}
	if controller.Kind != r.Scope.Kind("ObjectSet") || controller.UID == os.UID {
		return false, nil
	}
	other := &v1alpha1.ObjectSet{}
	found, err := r.find(ctx, os.Namespace, controller.Name, controller.UID, other)
	if !found || err != nil || other.Spec.Revision <= os.Spec.Revision {
		return false, err
	}
	if deployment := os.Labels[v1alpha1.ObjectDeploymentLabel]; deployment != "" && other.Labels[v1alpha1.ObjectDeploymentLabel] == deployment {
		return true, nil
	}
	return r.follows(ctx, other, os)
}

// pageSize is how many revisions are read at a time.
const pageSize = 100

// superseded says whether there is a newer revision than os that works on objects, or may again: one that is archived or being deleted takes none any more.
// The API server itself is asked, since a newer one may be younger than what the cache knows; that is rare, and a deployment has few revisions.
func (r *Reconciler) superseded(ctx context.Context, os *v1alpha1.ObjectSet) (bool, error) {
	options := []client.ListOption{client.InNamespace(os.Namespace)}
	deployment := os.Labels[v1alpha1.ObjectDeploymentLabel]
	if deployment != "" {
		options = append(options, client.MatchingLabels{v1alpha1.ObjectDeploymentLabel: deployment})
	}
	list := &v1alpha1.ObjectSetList{}
	for err := range read.Pages(ctx, r.Live, list, pageSize, options...) {
		if err != nil {
			return false, fmt.Errorf("listing revisions that may be newer: %w", err)
		}
		for i := range list.Items {
			other := &list.Items[i]
			if other.Spec.Revision <= os.Spec.Revision || other.Spec.LifecycleState == v1alpha1.LifecycleStateArchived || !other.DeletionTimestamp.IsZero() {
				continue
			}
			if deployment != "" {
				return true, nil
			}
			if later, err := r.follows(ctx, other, os); later || err != nil {
				return later, err
			}
		}
	}
	return false, nil
}

// follows says whether a revision comes after another one, by what each names as its previous ones.
func (r *Reconciler) follows(ctx context.Context, later, earlier *v1alpha1.ObjectSet) (bool, error) {
	seen, queue := map[string]struct{}{later.Name: {}}, later.Spec.Previous
	for len(queue) > 0 {
		name := queue[0].Name
		queue = queue[1:]
		if name == earlier.Name {
			return true, nil
		}
		if _, again := seen[name]; again {
			continue
		}
		seen[name] = struct{}{}
		previous := &v1alpha1.ObjectSet{}
		found, err := r.find(ctx, later.Namespace, name, "", previous)
		if err != nil {
			return false, err
		}
		if found {
			queue = append(queue[:len(queue):len(queue)], previous.Spec.Previous...)
		}
	}
	return false, nil
}

// find reads what a name stands for, and says whether it is there and has this UID; "" is any. A cache that doesn't have it is not believed: whoever took an
// object over may be younger than what the cache knows.
func (r *Reconciler) find(ctx context.Context, namespace, name string, uid types.UID, obj client.Object) (bool, error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	err := r.Client.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) || (err == nil && uid != "" && obj.GetUID() != uid) {
		err = r.Live.Get(ctx, key, obj)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s, which may be a newer revision: %w", key, err)
	}
	return uid == "" || obj.GetUID() == uid, nil
}
