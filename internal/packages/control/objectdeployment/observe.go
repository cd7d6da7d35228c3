package objectdeployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/revision"
)

func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey, d *v1alpha1.ObjectDeployment) (observed, error) {
	obs := observed{deployment: d, kind: r.Scope.Kind("ObjectDeployment"), hash: r.hash(key, d)}
	selector, err := metav1.LabelSelectorAsSelector(&d.Spec.Selector)
	if err != nil {
		return obs, fmt.Errorf("spec.selector of %s: %w", key, err)
	}
	for controller, selects := range map[string]labels.Selector{
		string(d.UID): labels.Everything(), // ours stay ours, whatever becomes of labels and selector
		noController:  selector,
	} {
		list := &v1alpha1.ObjectSetList{}
		err := r.Client.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingFields{controllerIndex: controller}, client.MatchingLabelsSelector{Selector: selects})
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

// hashed is what a hash was computed from. One that was deleted and made anew begins at generation 1 again, so the UID tells it apart.
type hashed struct {
	uid        types.UID
	generation int64
	collisions int32
	hash       string
}
