package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/sizing"
)

const (
	// recommenderName is that of the controller.
	recommenderName = "resourcebasedcontrolplaneautoscaler"
	// lookAgain is how often a recommendation is looked at: the vertical pod autoscaler changes it by the minute at most.
	lookAgain       = time.Minute
	lookAgainJitter = 0.2
)

// verticalPodAutoscaler is what watches how much memory API servers use.
var verticalPodAutoscaler = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}

// Recommender has the sizes of hosted clusters that ask for it follow from how much memory their API servers use. It is the only writer of annotation
// recommended-cluster-size, and of the VerticalPodAutoscaler kube-apiserver in their namespaces, which only watches.
type Recommender struct {
	// Client reads HostedClusters, Live everything else, and writes.
	Client client.Client
	Live   client.Client
	Clock  clock.PassiveClock
	// Events may be nil.
	Events   events.Recorder
	Operator scope.Identity

	told events.Limiter
}

// Reconcile looks at one HostedCluster.
func (r *Recommender) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hc, again, err := hosted(ctx, r.Client, req.NamespacedName, r.Operator, r.Clock.Now())
	if hc == nil || err != nil {
		return ctrl.Result{RequeueAfter: again}, err
	}
	if hc.Annotations[hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation] != "true" {
		if _, had := hc.Annotations[hyperv1.RecommendedClusterSizeAnnotation]; !had {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, r.stop(ctx, hc)
	}
	spec, ok, err := configuration(ctx, r.Client)
	if !ok || err != nil {
		return ctrl.Result{}, err
	}
	after := ctrl.Result{RequeueAfter: wait.Jitter(lookAgain, lookAgainJitter)}
	memory, why, err := r.memory(ctx, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if why != "" {
		r.tell(hc, why)
		return after, nil
	}
	size, err := sizing.Recommend(spec, memory)
	if err != nil {
		r.tell(hc, err.Error())
		return after, nil
	}
	if hc.Annotations[hyperv1.RecommendedClusterSizeAnnotation] == size {
		return after, nil
	}
	if err := r.Client.Patch(ctx, hc, patch.Annotation(hyperv1.RecommendedClusterSizeAnnotation, &size), client.FieldOwner(recommenderName)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("recommending a size for HostedCluster %s: %w", names.BackReference(hc), err)
	}
	ctrl.LoggerFrom(ctx).Info("recommended a size", "size", size, "memory", memory.String())
	return after, nil
}

// tell says why there is no recommendation, once in a while.
func (r *Recommender) tell(hc *hyperv1.HostedCluster, why string) {
	if r.told.Allow(names.BackReference(hc), r.Clock.Now(), time.Hour) {
		events.Event(r.Events, hc, true, "NoRecommendedSize", "Size", "The size can't follow from what the API server uses: "+why)
	}
}

// memory is what the API server wants, or why nobody knows.
func (r *Recommender) memory(ctx context.Context, hc *hyperv1.HostedCluster) (_ resource.Quantity, why string, _ error) {
	want, live := autoscaler(hc), &unstructured.Unstructured{}
	live.SetGroupVersionKind(verticalPodAutoscaler)
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if meta.IsNoMatchError(err) {
		return resource.Quantity{}, "install the vertical pod autoscaler on the management cluster: it does not serve " + verticalPodAutoscaler.GroupKind().String(), nil
	}
	if apierrors.IsNotFound(err) {
		ns := &corev1.Namespace{}
		if err := r.Live.Get(ctx, client.ObjectKey{Name: want.GetNamespace()}, ns); apierrors.IsNotFound(err) {
			return resource.Quantity{}, "it has no control plane yet", nil
		}
	} else if err != nil {
		return resource.Quantity{}, "", fmt.Errorf("reading VerticalPodAutoscaler %s: %w", client.ObjectKeyFromObject(want), err)
	}
	if err := apply.New(r.Live, recommenderName).Apply(ctx, want); err != nil {
		return resource.Quantity{}, "", err
	}
	return recommendation(live)
}

// recommendation reads what the vertical pod autoscaler says. Its status is as published; what is not so says nothing.
func recommendation(vpa *unstructured.Unstructured) (_ resource.Quantity, why string, _ error) {
	list, _, _ := unstructured.NestedSlice(vpa.Object, "status", "recommendation", "containerRecommendations")
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c["containerName"] != names.KubeAPIServer {
			continue
		}
		text, _, _ := unstructured.NestedString(c, "uncappedTarget", "memory")
		if q, err := resource.ParseQuantity(text); err == nil && q.Sign() > 0 {
			return q, "", nil
		}
	}
	return resource.Quantity{}, "the vertical pod autoscaler has seen too little of it yet", nil
}

// autoscaler is the one that watches the API server of a hosted cluster, and changes nothing.
func autoscaler(hc *hyperv1.HostedCluster) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"namespace": names.NamespaceOf(hc), "name": names.KubeAPIServer,
			"annotations": map[string]any{hyperv1.ClusterNameLabel: hc.Name, hyperv1.ClusterNamespaceLabel: hc.Namespace},
		},
		"spec": map[string]any{
			"targetRef":    map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": names.KubeAPIServer},
			"updatePolicy": map[string]any{"updateMode": "Off"},
		},
	}}
	u.SetGroupVersionKind(verticalPodAutoscaler)
	return u
}

// stop takes away what was made for a cluster that no longer asks for it.
func (r *Recommender) stop(ctx context.Context, hc *hyperv1.HostedCluster) error {
	err := r.Live.Delete(ctx, autoscaler(hc))
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting VerticalPodAutoscaler of HostedCluster %s: %w", names.BackReference(hc), err)
	}
	if err := r.Client.Patch(ctx, hc, patch.Annotation(hyperv1.RecommendedClusterSizeAnnotation, nil), client.FieldOwner(recommenderName)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking the recommended size from HostedCluster %s: %w", names.BackReference(hc), err)
	}
	return nil
}
