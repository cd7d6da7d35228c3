package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	// leaving is how often machines are looked at that are to go: those of the management cluster tell nobody.
	leaving = 5 * time.Second
	// staying is how often they are looked at while none is to go, for those whose NodeClaim is gone.
	staying = 2 * time.Minute
	// orphaned is how old such a machine is before it goes.
	orphaned = 5 * time.Minute
)

// maxVCPUs is what the field takes.
const maxVCPUs = 1_000_000

// Report counts Karpenter's machines in the status of the HostedControlPlane, whose field autoNode it is the only writer of. When Karpenter is to go it has all machines
// go first, drained as Karpenter does it, and counts nothing once none is left; Karpenter's NodePools stay for when it is asked for again.
//
// It also removes machines whose NodeClaim is gone. Karpenter's core deletes those of which it has stored that they were made: it knows nothing of one that was being made when its
// process ended, or that was made after the backup which the hosted cluster was restored from.
type Report struct {
	Hosted client.Client
	// Live reads the hosted cluster past the cache.
	Live     client.Reader
	Machines Machines
	// ControlPlane is the name of the HostedControlPlane.
	ControlPlane string
	// Retire: all machines are to go.
	Retire bool

	reported atomic.Bool
	looked   time.Time // when machines were last looked at while none is to go
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
		var err error
		if time.Since(r.looked) >= staying { // also when it fails: events are many
			r.looked = time.Now()
			_, err = r.sweep(ctx, orphaned)
		}
		return ctrl.Result{RequeueAfter: staying}, errors.Join(err, r.write(ctx, Count(claims.Items, nodes.Items)))
	}
	var errs []error
	for i := range claims.Items {
		if c := &claims.Items[i]; c.DeletionTimestamp.IsZero() {
			errs = append(errs, client.IgnoreNotFound(r.Hosted.Delete(ctx, c)))
		}
	}
	machines, err := r.sweep(ctx, 0)
	if err := errors.Join(append(errs, err)...); err != nil {
		return ctrl.Result{}, fmt.Errorf("removing the machines of Karpenter: %w", err)
	}
	if len(claims.Items)+len(nodes.Items)+machines == 0 {
		return ctrl.Result{RequeueAfter: leaving}, r.write(ctx, nil)
	}
	counts := Count(claims.Items, nodes.Items)
	counts["nodeClaimCount"] = int64(max(len(claims.Items), machines)) // a machine whose claim is gone is to go, too
	return ctrl.Result{RequeueAfter: leaving}, r.write(ctx, counts)
}

// sweep removes machines of some age whose NodeClaim is gone, and tells how many machines there are, those included.
func (r *Report) sweep(ctx context.Context, age time.Duration) (int, error) {
	// Machines before claims: what is made of a claim is made after it.
	machines, err := r.Machines.Remains(ctx)
	if err != nil {
		return 0, err
	}
	n := len(machines)
	maps.DeleteFunc(machines, func(_ string, m Remains) bool { return m.Deleting || time.Since(m.Made) < age })
	if len(machines) == 0 {
		return n, nil
	}
	claims := &v1.NodeClaimList{}
	if err := r.Live.List(ctx, claims); err != nil {
		return n, fmt.Errorf("listing NodeClaims: %w", err)
	}
	for i := range claims.Items {
		delete(machines, claims.Items[i].Name)
	}
	var errs []error
	for name := range machines {
		log.FromContext(ctx).Info("removing a machine whose NodeClaim is gone", "machine", name)
		_, err := r.Machines.Delete(ctx, name)
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
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
