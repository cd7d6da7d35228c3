package etcdrecovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
)

// lasting says whether spec.pausedUntil pauses until somebody changes it. A pause that ends by itself could end halfway.
func lasting(pausedUntil *string) bool {
	p := pause.At(pausedUntil, time.Time{}) // whatever the time is
	return p.Active && p.Until.IsZero()
}

// paused is what the recovery writes to spec.pausedUntil.
const paused = "true"

// pause stops the operators, which would start members again, and waits until they say so.
func (q Quorum) pause(ctx context.Context, set *appsv1.StatefulSet, n *note) error {
	// Whoever changes the field meanwhile wins: it is read again, so that nothing is replaced that isn't noted.
	var failed error
	err := q.await(ctx, "HostedCluster "+q.Cluster.String()+" to be paused", func(ctx context.Context) (bool, error) {
		failed = q.pauseOnce(ctx, set, n)
		return !apierrors.IsConflict(failed), nil
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return q.await(ctx, "operators to see the pause (if this takes long, look at the logs of hypershift-operator and control-plane-operator)", q.heard)
}

// heard says whether the operators know of the pause.
func (q Quorum) heard(ctx context.Context) (bool, error) {
	hc, err := q.hostedCluster(ctx)
	if err != nil {
		return false, err
	}
	hcp := &hyperv1.HostedControlPlane{}
	if err := q.Client.Get(ctx, client.ObjectKey{Namespace: q.Namespace, Name: q.Cluster.Name}, hcp); err != nil {
		return false, fmt.Errorf("reading HostedControlPlane %s/%s: %w", q.Namespace, q.Cluster.Name, err)
	}
	return stands(hc.Spec.PausedUntil, hc.Status.Conditions, hc.Generation) && stands(hcp.Spec.PausedUntil, hcp.Status.Conditions, hcp.Generation), nil
}

// stands says whether an object is paused, and its operator has said so of this generation. An operator that is behind may still pass on the end of an earlier
// pause, and have members run again.
func stands(pausedUntil *string, conds []metav1.Condition, generation int64) bool {
	c := conditions.Current(conds, hyperv1.ReconciliationActive, generation)
	return lasting(pausedUntil) && c != nil && c.Status == metav1.ConditionFalse
}

// pauseOnce notes what spec.pausedUntil says, and replaces it, unless that is a pause already which lasts.
func (q Quorum) pauseOnce(ctx context.Context, set *appsv1.StatefulSet, n *note) error {
	hc, err := q.hostedCluster(ctx)
	if err != nil || lasting(hc.Spec.PausedUntil) {
		return err
	}
	n.Paused, n.Before = true, hc.Spec.PausedUntil
	if err := q.annotate(ctx, set, n); err != nil {
		return err
	}
	q.say("pausing HostedCluster %s", q.Cluster)
	return q.patch(ctx, hc, fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"pausedUntil":%q}}`, hc.ResourceVersion, paused))
}

func (q Quorum) hostedCluster(ctx context.Context) (*hyperv1.HostedCluster, error) {
	hc := &hyperv1.HostedCluster{}
	if err := q.Client.Get(ctx, q.Cluster, hc); err != nil {
		return nil, fmt.Errorf("reading HostedCluster %s: %w", q.Cluster, err)
	}
	return hc, nil
}

// endOfPause is the patch that restarts the control plane if that is wanted, and puts back what pausedUntil said before. What somebody else has written since stays.
func endOfPause(hc *hyperv1.HostedCluster, n *note, restart bool, now time.Time) map[string]any {
	meta := map[string]any{}
	patch := map[string]any{"metadata": meta}
	if restart {
		meta["annotations"] = map[string]string{hyperv1.RestartDateAnnotation: now.UTC().Format(time.RFC3339)}
	}
	if n.Paused && ptr.Deref(hc.Spec.PausedUntil, "") == paused {
		meta["resourceVersion"] = hc.ResourceVersion // it still says so when it is replaced
		patch["spec"] = map[string]any{"pausedUntil": n.Before}
	}
	return patch
}
