package nodes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"hcp.internal/platform/internal/kube/changes"
)

// timeout bounds reading and writing one Node.
const timeout = 10 * time.Second

// Reconciler labels the Node of one Machine.
type Reconciler struct {
	Management client.Reader
	Hosted     client.Client // uncached
}

// Matters lets Machines through when they get a node; what changes later is no business of this controller.
func Matters() predicate.Predicate {
	return changes.Into(func(o client.Object) bool {
		m, ok := o.(*clusterv1.Machine)
		return ok && m.Status.NodeRef.Name != ""
	})
}

// Reconcile labels the Node of the Machine of the request, unless it was labelled before.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	machine := &clusterv1.Machine{}
	if err := r.Management.Get(ctx, req.NamespacedName, machine); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading Machine %s: %w", req, err))
	}
	if machine.Status.NodeRef.Name == "" || !machine.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	node := &corev1.Node{}
	if err := r.Hosted.Get(ctx, client.ObjectKey{Name: machine.Status.NodeRef.Name}, node); apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil // gone again; a new one is another Machine's
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the Node of Machine %s: %w", req, err)
	}
	if synced(node) {
		return ctrl.Result{}, nil
	}
	wanted, err := wantedOf(machine)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading what Machine %s says of its Node: %w", req, err)
	}
	before := node.DeepCopy()
	complete(node, wanted)
	// Taints are a list, so the patch holds for this version of the Node only.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Hosted.Patch(ctx, node, patch); err != nil {
		return ctrl.Result{}, fmt.Errorf("labelling the Node of Machine %s: %w", req, err)
	}
	ctrl.LoggerFrom(ctx).Info("labelled a node", "machine", klog.KObj(machine), "labels", len(wanted.Labels), "taints", len(wanted.Taints))
	return ctrl.Result{}, nil
}
