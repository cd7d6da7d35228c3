// Package nodecount tells the management cluster how many Nodes a hosted cluster has, by which its control plane is sized.
package nodecount

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
)

const (
	// Controller is the name of the controller, and the owner of the field that it writes.
	Controller = "nodecount"
	// resync is a safety net for lost watches, and how long after a hosted API that does not answer it is asked again: the last number stands.
	resync = 5 * time.Minute
	jitter = 0.2
	// timeout bounds counting.
	timeout = 10 * time.Second
	// Most is the largest number that is told: more Nodes than any cluster has are a tenant's game.
	Most = 100_000
)

// Reconciler keeps status.nodeCount of a HostedControlPlane. It is its only writer.
type Reconciler struct {
	Management client.Client // not cached: the decision whether to write needs what was written last
	Hosted     client.Client
	Clock      clock.PassiveClock
	// Hold says why nothing is to be done, if so.
	Hold hold.Func
}

// Reconcile counts once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, done, err := hold.Begin(ctx, r.Management, req, r.Hold, r.Clock.Now())
	if hcp == nil {
		return done, err
	}
	again := ctrl.Result{RequeueAfter: wait.Jitter(resync, jitter)}
	n, err := count(ctx, r.Hosted)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the nodes can't be counted now; the last number stands", "error", err.Error())
		return again, nil
	}
	if hcp.Status.NodeCount != nil && *hcp.Status.NodeCount == n {
		return again, nil
	}
	status := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": hcp.Namespace, "name": hcp.Name, "uid": string(hcp.UID)},
		"status":   map[string]any{"nodeCount": int64(n)},
	}}
	status.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedControlPlane"))
	err = r.Management.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner(Controller), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("writing the number of nodes of HostedControlPlane %s: %w", req, err)
	}
	ctrl.LoggerFrom(ctx).Info("counted the nodes", "nodes", n)
	return again, nil
}

// count asks for one Node and how many more there are, so that a tenant with a million of them costs nothing.
func count(ctx context.Context, hosted client.Reader) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := hosted.List(ctx, list, client.Limit(1)); err != nil {
		return 0, fmt.Errorf("counting nodes: %w", err)
	}
	return int(min(int64(len(list.Items))+ptr.Deref(list.RemainingItemCount, 0), Most)), nil
}
