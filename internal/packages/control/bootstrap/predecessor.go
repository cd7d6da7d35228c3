package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/read"
)

// stopPredecessor removes the operator that runs, and stops its revisions from being rolled out by the next one. A revision of the wanted image
// that was stopped goes on.
func (b *bootstrap) stopPredecessor(ctx context.Context, image string) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.options.Namespace, Name: managerName}}
	err := b.client.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationForeground), client.GracePeriodSeconds(0))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollEvery, removalTime, true, func(ctx context.Context) (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(d), d)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for Deployment %s/%s to go: %w", d.Namespace, d.Name, err)
	}
	return b.eachRevision(ctx, client.MatchingLabels{v1alpha1.ObjectDeploymentLabel: packageName}, func(os *v1alpha1.ClusterObjectSet) error {
		state := os.Spec.LifecycleState
		switch wanted := os.Annotations[v1alpha1.PackageSourceImageAnnotation] == image; {
		case wanted && state == v1alpha1.LifecycleStatePaused:
			state = v1alpha1.LifecycleStateActive
		case !wanted && (state == v1alpha1.LifecycleStateActive || state == ""):
			state = v1alpha1.LifecycleStatePaused
		default:
			return nil
		}
		return b.patch(ctx, os, map[string]any{"lifecycleState": state})
	})
}

// number gives a number to revisions of older operators, which set none: one more than the revision before. Nothing is rolled out without it.
func (b *bootstrap) number(ctx context.Context) error {
	numbers := map[string]int64{}
	var without []*v1alpha1.ClusterObjectSet
	err := b.eachRevision(ctx, client.MatchingLabels{}, func(os *v1alpha1.ClusterObjectSet) error {
		if numbers[os.Name] = os.Spec.Revision; os.Spec.Revision == 0 {
			without = append(without, os.DeepCopy())
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Each round gives at least one its number, unless they wait for each other.
	for progress := true; progress && len(without) > 0; {
		progress = false
		var rest []*v1alpha1.ClusterObjectSet
		for _, os := range without {
			next, known := int64(1), true
			for _, previous := range os.Spec.Previous {
				number, there := numbers[previous.Name]
				known = known && !(there && number == 0)
				next = max(next, number+1)
			}
			if !known {
				rest = append(rest, os)
				continue
			}
			if err := b.patch(ctx, os, map[string]any{"revision": next}); err != nil {
				return err
			}
			numbers[os.Name], progress = next, true
		}
		without = rest
	}
	if len(without) > 0 {
		return fmt.Errorf("ClusterObjectSet %s has no revision number, and its spec.previous leads back to itself: give it one by hand", without[0].Name)
	}
	return nil
}

func (b *bootstrap) eachRevision(ctx context.Context, labels client.MatchingLabels, do func(*v1alpha1.ClusterObjectSet) error) error {
	list := &v1alpha1.ClusterObjectSetList{}
	for err := range read.Pages(ctx, b.client, list, pageSize, labels) {
		if err != nil {
			return fmt.Errorf("listing ClusterObjectSets: %w", err)
		}
		for i := range list.Items {
			if err := do(&list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// patch changes a revision as it was read, and no other.
func (b *bootstrap) patch(ctx context.Context, os *v1alpha1.ClusterObjectSet, spec map[string]any) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": os.ResourceVersion}, "spec": spec})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := b.client.Patch(ctx, os, client.RawPatch(types.MergePatchType, data), client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("changing ClusterObjectSet %s: %w", os.Name, err)
	}
	return nil
}
