package fleet

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/placement"
)

// lookForOrphans is how often it is looked for what clusters that are gone have left. It is left only when an operator ends between two writes, or is away while
// a cluster goes.
const lookForOrphans = 5 * time.Minute

// orphans are the HostedClusters that are gone and still have a pair, or a placeholder for nodes that they lack. No event comes for these any more.
func (s *Scheduler) orphans(ctx context.Context) ([]client.ObjectKey, error) {
	owners, err := claims(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	having := map[client.ObjectKey]bool{}
	for _, owner := range owners {
		having[owner] = true
	}
	placeholders := &metav1.PartialObjectMetadataList{}
	placeholders.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	if err := s.Live.List(ctx, placeholders, client.InNamespace(placement.Namespace), client.HasLabels{hyperv1.ClusterNameLabel}, client.Limit(maxPlaceholders)); err != nil {
		return nil, fmt.Errorf("listing placeholders in namespace %s: %w", placement.Namespace, err)
	}
	for i := range placeholders.Items {
		labels := placeholders.Items[i].Labels
		having[client.ObjectKey{Namespace: labels[hyperv1.ClusterNamespaceLabel], Name: labels[hyperv1.ClusterNameLabel]}] = true
	}
	var orphans []client.ObjectKey
	for key := range having {
		if key.Namespace == "" || key.Name == "" {
			continue
		}
		gone, err := s.gone(ctx, key)
		if err != nil {
			return nil, err
		}
		if gone {
			orphans = append(orphans, key)
		}
	}
	return orphans, nil
}

// orphaned gives the Scheduler the keys of orphans, at its start and every now and then.
func (s *Scheduler) orphaned() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go wait.UntilWithContext(ctx, func(ctx context.Context) {
			keys, err := s.orphans(ctx)
			if err != nil && ctx.Err() == nil {
				ctrl.LoggerFrom(ctx).Error(err, "looking for pairs of hosted clusters that are gone")
			}
			for _, key := range keys {
				queue.Add(reconcile.Request{NamespacedName: key})
			}
		}, lookForOrphans)
		return nil
	})
}

// wake has the Warmer look at the claims again.
func (s *Scheduler) wake() {
	select {
	case s.Released <- event.GenericEvent{Object: &hyperv1.HostedCluster{}}:
	default: // nobody listens, or it is about to look
	}
}
