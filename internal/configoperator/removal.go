package configoperator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/openshift"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/removal"
	"hcp.internal/platform/internal/kube/conditions"
)

const (
	// removalRecheck is when to look again at what is going.
	removalRecheck = 30 * time.Second
	// removalSoon is when to look again whether it may begin.
	removalSoon = 5 * time.Second
	// removalPatience is how long a hosted API that gives no answers is waited for, and removalFailures how often it is asked.
	removalPatience, removalFailures = 5 * time.Minute, 5
	// removalPage bounds how many objects of a kind a pass deletes; the next one goes on.
	removalPage = 500
	// ingressOwned is on Services that go with their IngressController.
	ingressOwned = "ingresscontroller.operator.openshift.io/owning-ingresscontroller"
)

// Kinds that stand for something in a cloud, beside those of Kubernetes.
var (
	ingressControllers = schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "IngressController"}
	volumeSnapshots    = schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}
)

// reconcileRemoval has the hosted cluster's own controllers remove what they have made in a cloud: load balancers, volumes, the storage of the image registry. What
// is asked for anew is refused first. The condition CloudResourcesDestroyed says what is left.
func (r *Reconciler) reconcileRemoval(ctx context.Context, hcp *hyperv1.HostedControlPlane) (ctrl.Result, error) {
	if removal.Of(hcp, r.Clock.Now()).Over {
		return ctrl.Result{}, nil
	}
	if r.Payload != nil && removal.Early(hcp, r.Clock.Now()) {
		return ctrl.Result{RequeueAfter: removalSoon}, nil
	}
	c := metav1.Condition{Type: hyperv1.CloudResourcesDestroyed, Status: metav1.ConditionFalse, ObservedGeneration: hcp.Generation}
	skip, err := r.skipsRemoval(ctx, hcp)
	if err != nil {
		return ctrl.Result{}, err
	}
	if skip != "" {
		c.Reason, c.Message = hyperv1.CloudResourcesCleanupSkippedReason, skip
		return ctrl.Result{}, r.reportRemoval(ctx, hcp, c)
	}
	remaining, err := r.removeAll(ctx, hcp)
	r.noteAnswer(err)
	switch {
	case err != nil:
		c.Reason, c.Message = "ErrorOccurred", inOurWords(err)
	case len(remaining) > 0:
		c.Reason, c.Message = hyperv1.RemainingCloudResourcesReason, "what is left: "+strings.Join(remaining, ", ")
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "CloudResourcesDestroyed", hyperv1.AllIsWellMessage
	}
	if c.Status != metav1.ConditionTrue && removal.Of(hcp, r.Clock.Now()).Stuck() {
		c.Reason, c.Message = hyperv1.CloudResourcesDeletionTimedOutReason, fmt.Sprintf("nothing is waited for any more after %s; %s", removal.Limit, c.Message)
		return ctrl.Result{}, r.reportRemoval(ctx, hcp, c)
	}
	if reportErr := r.reportRemoval(ctx, hcp, c); reportErr != nil || c.Status == metav1.ConditionTrue {
		return ctrl.Result{}, reportErr
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("removing what the hosted cluster has in a cloud", "error", Failure{Object: "hosted cluster", Err: err}.Error())
	}
	return ctrl.Result{RequeueAfter: removalRecheck}, nil
}

// reportRemoval writes the condition beside the one about passes, which the same field owner has.
func (r *Reconciler) reportRemoval(ctx context.Context, hcp *hyperv1.HostedControlPlane, c metav1.Condition) error {
	want := []metav1.Condition{c}
	if old := conditions.Get(hcp.Status.Conditions, hyperv1.ConfigOperatorReconciliationSucceeded); old != nil {
		want = append(want, *old)
	}
	return r.report(ctx, hcp, want...)
}

// noteAnswer remembers since when the hosted API gives no answer. What is forgotten with the process costs time.
func (r *Reconciler) noteAnswer(err error) {
	if err == nil || errors.As(err, new(apierrors.APIStatus)) {
		r.silentSince, r.silences = time.Time{}, 0
		return
	}
	if r.silences++; r.silentSince.IsZero() {
		r.silentSince = r.Clock.Now()
	}
}

// skipsRemoval says why nothing more can be removed, if so.
func (r *Reconciler) skipsRemoval(ctx context.Context, hcp *hyperv1.HostedControlPlane) (string, error) {
	switch {
	case r.silences >= removalFailures:
		return "MaxConnectionFailuresExceeded: the hosted API gave no answer several times; what the hosted cluster has in a cloud stays", nil
	case !r.silentSince.IsZero() && r.Clock.Since(r.silentSince) >= removalPatience:
		return "ConnectionFailureTimeout: the hosted API gives no answer; what the hosted cluster has in a cloud stays", nil
	}
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	err := r.Management.Get(ctx, client.ObjectKey{Namespace: hcp.Namespace, Name: names.KubeAPIServer}, d)
	if apierrors.IsNotFound(err) {
		return "KubeAPIServerUnavailable: the API server of the hosted cluster is gone; what the hosted cluster has in a cloud stays", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for the API server of the hosted cluster: %w", err)
	}
	return "", nil
}

// removeAll asks for the removal of everything, and says what is still there.
func (r *Reconciler) removeAll(ctx context.Context, hcp *hyperv1.HostedControlPlane) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, payloadTimeout)
	defer cancel()
	for _, a := range openshift.PrepareRemoval(hcp) {
		if err := r.executorOnce().Run(ctx, a); err != nil && !errors.Is(err, openshift.ErrNoKind) {
			return nil, fmt.Errorf("%s: %w", a.Name(), err)
		}
	}
	for _, a := range openshift.RemovePassthrough(hcp) {
		if err := r.runOne(ctx, a); err != nil { // nobody waits for another cluster: what stays there leads nowhere
			ctrl.LoggerFrom(ctx).Info("something stays in the cluster that runs the virtual machines", "object", a.Name(), "reason", inOurWords(err))
		}
	}
	left := map[string]int{}
	registry, err := r.registryStorage(ctx)
	if err != nil {
		return nil, err
	}
	if registry {
		left["the storage of the image registry"] = 1
	}
	steps := []struct {
		what string
		do   func(context.Context) (int, error)
	}{
		{"IngressControllers", func(ctx context.Context) (int, error) {
			n, err := r.deleteAll(ctx, ingressControllers, nil)
			if err == nil {
				// Routers drain for an hour; nobody comes any more.
				_, err = r.deleteAll(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), nil, client.InNamespace("openshift-ingress"))
			}
			return n, err
		}},
		{"load balancers", func(ctx context.Context) (int, error) {
			return r.deleteAll(ctx, corev1.SchemeGroupVersion.WithKind("Service"), func(u *unstructured.Unstructured) bool {
				kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
				_, labelled := u.GetLabels()[ingressOwned]
				_, annotated := u.GetAnnotations()[ingressOwned]
				return kind == string(corev1.ServiceTypeLoadBalancer) && !labelled && !annotated
			})
		}},
		{"volumes", r.deleteVolumes},
		{"snapshots of volumes", func(ctx context.Context) (int, error) { return r.deleteAll(ctx, volumeSnapshots, nil) }},
	}
	for _, s := range steps {
		n, err := s.do(ctx)
		if err != nil {
			return nil, fmt.Errorf("removing %s: %w", s.what, err)
		}
		if n > 0 {
			left[s.what] = n
		}
	}
	return slices.Sorted(maps.Keys(left)), nil
}

// registryStorage says whether the image registry still has storage in a cloud.
func (r *Reconciler) registryStorage(ctx context.Context) (bool, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(openshift.RegistryKind)
	err := r.Hosted.Get(ctx, client.ObjectKey{Name: "cluster"}, u)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	state, _, _ := unstructured.NestedString(u.Object, "status", "storage", "managementState")
	return state != "" && state != "Removed", err
}

// deleteVolumes deletes all claims, and the pods that hold them, and counts the volumes that are left.
func (r *Reconciler) deleteVolumes(ctx context.Context) (int, error) {
	if _, err := r.deleteAll(ctx, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), nil); err != nil {
		return 0, err
	}
	_, err := r.deleteAll(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), func(u *unstructured.Unstructured) bool {
		volumes, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumes")
		return slices.ContainsFunc(volumes, func(v any) bool {
			volume, _ := v.(map[string]any)
			return volume["persistentVolumeClaim"] != nil
		})
	})
	if err != nil {
		return 0, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeList"))
	err = r.Hosted.List(ctx, list, client.Limit(1))
	return len(list.Items), err
}

// deleteAll deletes the objects of a kind that match, at once where they are pods, a page after the other, and counts them.
func (r *Reconciler) deleteAll(ctx context.Context, kind schema.GroupVersionKind, match func(*unstructured.Unstructured) bool, options ...client.ListOption) (int, error) {
	found := 0
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.Hosted.List(ctx, list, append([]client.ListOption{client.Limit(removalPage), client.Continue(next)}, options...)...)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return found, nil
		}
		if err != nil {
			return found, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			if match != nil && !match(u) {
				continue
			}
			found++
			if !u.GetDeletionTimestamp().IsZero() && kind.Kind != "Pod" {
				continue
			}
			uid := u.GetUID()
			options := []client.DeleteOption{client.Preconditions{UID: &uid}}
			if kind.Kind == "Pod" {
				options = append(options, client.GracePeriodSeconds(0))
			}
			if err := r.Hosted.Delete(ctx, u, options...); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return found, fmt.Errorf("deleting a %s: %w", kind.Kind, err)
			}
		}
		if next = list.GetContinue(); next == "" {
			return found, nil
		}
	}
}
