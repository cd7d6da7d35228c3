package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// leaving is how often machines are looked at that are to go: those of the management cluster tell nobody.
const leaving = 5 * time.Second

// maxVCPUs is what the field takes.
const maxVCPUs = 1_000_000

// Report counts Karpenter's machines in the status of the HostedControlPlane, whose field autoNode it is the only writer of. When Karpenter is to go it has all machines
// go first, drained as Karpenter does it, and counts nothing once none is left; Karpenter's NodePools stay for when it is asked for again.
type Report struct {
	Hosted   client.Client
	Machines Machines
	// ControlPlane is the name of the HostedControlPlane.
	ControlPlane string
	// Retire: all machines are to go.
	Retire bool

	reported atomic.Bool
}

// one is the only request.
var one = reconcile.Request{NamespacedName: client.ObjectKey{Name: "all"}}

// Reconcile looks at all machines.
func (r *Report) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	claims, nodes := &v1.NodeClaimList{}, &corev1.NodeList{}
	if err := r.Hosted.List(ctx, claims); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing NodeClaims: %w", err)
	}
	if err := r.Hosted.List(ctx, nodes, client.HasLabels{v1.NodePoolLabelKey}); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing nodes of Karpenter: %w", err)
	}
	if !r.Retire {
		return ctrl.Result{}, r.write(ctx, Count(claims.Items, nodes.Items))
	}
	var errs []error
	for i := range claims.Items {
		if c := &claims.Items[i]; c.DeletionTimestamp.IsZero() {
			errs = append(errs, client.IgnoreNotFound(r.Hosted.Delete(ctx, c)))
		}
	}
	machines, err := r.Machines.List(ctx)
	if err := errors.Join(append(errs, err)...); err != nil {
		return ctrl.Result{}, fmt.Errorf("removing the machines of Karpenter: %w", err)
	}
	if len(claims.Items)+len(nodes.Items)+len(machines) == 0 {
		return ctrl.Result{RequeueAfter: leaving}, r.write(ctx, nil)
	}
	counts := Count(claims.Items, nodes.Items)
	counts["nodeClaimCount"] = int64(max(len(claims.Items), len(machines))) // a machine whose claim is gone is to go, too
	return ctrl.Result{RequeueAfter: leaving}, r.write(ctx, counts)
}

// Count is status.autoNode.
func Count(claims []v1.NodeClaim, nodes []corev1.Node) map[string]any {
	live, processors := map[string]bool{}, int64(0)
	for i := range nodes {
		live[nodes[i].Name] = true
	}
	for i := range claims {
		if live[claims[i].Status.NodeName] {
			processors += claims[i].Status.Capacity.Cpu().Value()
		}
	}
	return map[string]any{"nodeCount": int64(len(nodes)), "nodeClaimCount": int64(len(claims)), "vcpus": min(processors, maxVCPUs)}
}

// write brings the field to counts; nil removes it.
func (r *Report) write(ctx context.Context, counts map[string]any) error {
	hcp := &unstructured.Unstructured{}
	hcp.SetGroupVersionKind(schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedControlPlane"})
	if err := r.Machines.Client.Get(ctx, client.ObjectKey{Namespace: r.Machines.Namespace, Name: r.ControlPlane}, hcp); err != nil {
		return fmt.Errorf("reading HostedControlPlane %s: %w", r.ControlPlane, err)
	}
	have, _, _ := unstructured.NestedMap(hcp.Object, "status", "autoNode")
	if !equality.Semantic.DeepEqual(have, counts) {
		body, err := json.Marshal(map[string]any{"status": map[string]any{"autoNode": counts}})
		if err != nil {
			return err
		}
		if err := r.Machines.Client.Status().Patch(ctx, hcp, client.RawPatch("application/merge-patch+json", body), fieldOwner); err != nil {
			return fmt.Errorf("counting the machines of Karpenter in the status of HostedControlPlane %s: %w", r.ControlPlane, err)
		}
	}
	r.reported.Store(true)
	return nil
}

// Ready is an error until machines have been counted once.
func (r *Report) Ready(*http.Request) error {
	if !r.reported.Load() {
		return errors.New("machines have not been counted yet")
	}
	return nil
}

// Register adds the controller to a manager of the hosted cluster.
func (r *Report) Register(_ context.Context, mgr manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{one} })
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(one)
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("autonode").Watches(&v1.NodeClaim{}, all).Watches(&corev1.Node{}, all).WatchesRawSource(start).Complete(r)
}
