package nodetrust

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/contract/nodetrust"
)

const (
	// Controller is the name of the controller.
	Controller = "node-trust"
	// FieldOwner owns the condition. It differs from that of the process, whose other conditions an apply would take away.
	FieldOwner = "hosted-cluster-config-operator-node-trust"
	// idle is how long after a pass the next one comes when nothing is awaited, waiting when something is. Nothing is replaced within an hour of being made.
	idle, waiting = 10 * time.Minute, 20 * time.Second
	jitter        = 0.2
	// timeout bounds a request, pageSize an answer, and maxNodes how many nodes are asked about: more than Kubernetes knows how to run.
	timeout  = 10 * time.Second
	pageSize = 500
	maxNodes = 20000
)

// Reconciler looks after one HostedControlPlane. It is the only writer of condition NodesTrustAuthorities.
type Reconciler struct {
	Management client.Client // not cached: the decision whether to write needs what was written last
	Hosted     client.Client
	Clock      clock.PassiveClock
	// Hold says why nothing is to be done, if so.
	Hold hold.Func
	// Image has our programs that run on nodes; empty: the release has none.
	Image string
}

// Reconcile makes one pass.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, done, err := hold.Begin(ctx, r.Management, req, r.Hold, r.Clock.Now())
	if hcp == nil {
		return done, err
	}
	cm := &corev1.ConfigMap{}
	err = r.Management.Get(ctx, client.ObjectKey{Namespace: hcp.Namespace, Name: nodetrust.ConfigMap}, cm)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading ConfigMap %s/%s: %w", hcp.Namespace, nodetrust.ConfigMap, err)
	}
	hash := nodetrust.HashOf(cm.Data)
	if apierrors.IsNotFound(err) || hash == "" {
		return ctrl.Result{RequeueAfter: wait.Jitter(idle, jitter)}, r.report(ctx, hcp, nil)
	}
	failed := r.applyAll(ctx, cm.Data)
	if cm.Data[nodetrust.AwaitedKey] != "true" {
		if err := r.report(ctx, hcp, nil); err != nil || failed != nil {
			return ctrl.Result{}, fmt.Errorf("giving nodes their authorities: %w", firstOf(err, failed))
		}
		return ctrl.Result{RequeueAfter: wait.Jitter(idle, jitter)}, nil
	}
	obs := observed{hash: hash, noImage: r.Image == ""}
	if failed == nil {
		failed = r.observe(ctx, &obs)
	}
	obs.failed = failed != nil
	c := condition(obs, hcp.Generation)
	if err := r.report(ctx, hcp, &c); err != nil || failed != nil {
		return ctrl.Result{}, fmt.Errorf("looking whether nodes trust new authorities: %w", firstOf(err, failed))
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(waiting, jitter)}, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
