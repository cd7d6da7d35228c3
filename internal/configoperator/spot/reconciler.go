package spot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"hcp.internal/platform/internal/kube/changes"
)

// Reconciler looks at the Node of one Machine.
type Reconciler struct {
	Management client.Client
	Hosted     client.Reader // uncached
}

// Matters lets Machines through when they come to concern this controller; after that it goes by time.
func Matters() predicate.Predicate {
	return changes.Into(func(o client.Object) bool {
		m, ok := o.(*clusterv1.Machine)
		return ok && concerns(m)
	})
}

// Reconcile asks for another machine once the Node of the Machine of the request is said to go.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	machine := &clusterv1.Machine{}
	if err := r.Management.Get(ctx, req.NamespacedName, machine); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading Machine %s: %w", req, err))
	}
	if !concerns(machine) {
		return ctrl.Result{}, nil
	}
	node := &corev1.Node{}
	if err := r.Hosted.Get(ctx, client.ObjectKey{Name: machine.Status.NodeRef.Name}, node); apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: interval}, nil // it may come back
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the Node of Machine %s: %w", req, err)
	}
	signal := signalOf(node.Spec.Taints)
	if signal == "" {
		return ctrl.Result{RequeueAfter: interval}, nil
	}
	before := machine.DeepCopy()
	mark(machine, signal)
	if err := r.Management.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("asking for the remediation of Machine %s: %w", req, err))
	}
	ctrl.LoggerFrom(ctx).Info("the cloud takes a machine away, so another one is asked for", "machine", klog.KObj(machine), "signal", signal)
	return ctrl.Result{}, nil
}
