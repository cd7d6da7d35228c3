// Package recovery brings a hosted cluster back that was restored from a backup of its etcd, and says when it is whole again.
//
// etcd remembers objects whose counterpart outside is gone: nodes, and volumes. Nodes come back or are replaced by others' hands. Of what OpenShift keeps on
// volumes by itself, Prometheus would wait for its old ones for ever; it gets new ones.
//
//	HostedControlPlane with restored-from-backup ──▶ Observe ──▶ PlanFor (pure) ──▶ Apply ──▶ condition HostedClusterRestoredFromBackup
package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

const (
	// Recheck is how long after an unfinished look the next one comes.
	Recheck = 2 * time.Minute

	// timeout bounds all reads of a look, and all that is deleted after it.
	timeout = 30 * time.Second
	// page is how many objects are asked for at once, and maxPages how many pages are read of a kind.
	page     = 500
	maxPages = 20

	monitoring = "openshift-monitoring"
	prometheus = "prometheus-k8s"
	systemPods = "kube-system"

	reason = "RecoveryFinished" // in both cases, as published
)

// Observed is what a decision goes by.
type Observed struct {
	// Restored is when the control plane was made that the backup was restored into: what is older came with the backup.
	Restored time.Time
	// Payload says whether the hosted cluster is one of OpenShift.
	Payload bool

	// Prometheus is the workload that keeps its data on volumes, nil: there is none. Claims and Pods are those beside it.
	Prometheus *appsv1.StatefulSet
	Claims     []corev1.PersistentVolumeClaim
	Pods       []corev1.Pod

	// Nodes and NotReady count nodes, System are the Deployments of the cluster itself; for releases of Kubernetes.
	Nodes, NotReady int
	System          []appsv1.Deployment
}

// Plan is what to do. Claims go before the pods that keep them.
type Plan struct {
	// Waiting says what is missing; empty: the cluster is whole.
	Waiting string
	Delete  []client.Object
}

// Marked says whether a control plane was restored, and nobody has found it whole since.
func Marked(hcp *hyperv1.HostedControlPlane) bool {
	_, marked := hcp.Annotations[hyperv1.HostedClusterRestoredFromBackupAnnotation]
	return marked
}

// Observe reads the hosted cluster, without a cache.
func Observe(ctx context.Context, hosted client.Reader, hcp *hyperv1.HostedControlPlane, payload bool) (Observed, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	obs := Observed{Restored: hcp.CreationTimestamp.Time, Payload: payload}
	if payload {
		return obs, obs.observePrometheus(ctx, hosted)
	}
	nodes := &corev1.NodeList{}
	err := pages(ctx, hosted, nodes, func() {
		for i := range nodes.Items {
			obs.Nodes++
			if !ready(&nodes.Items[i]) {
				obs.NotReady++
			}
		}
	})
	if err != nil {
		return obs, fmt.Errorf("listing nodes: %w", err)
	}
	system := &appsv1.DeploymentList{}
	if err := hosted.List(ctx, system, client.InNamespace(systemPods), client.Limit(page)); err != nil {
		return obs, fmt.Errorf("listing deployments of %s: %w", systemPods, err)
	}
	obs.System = system.Items
	return obs, nil
}

func (obs *Observed) observePrometheus(ctx context.Context, hosted client.Reader) error {
	set := &appsv1.StatefulSet{}
	err := hosted.Get(ctx, client.ObjectKey{Namespace: monitoring, Name: prometheus}, set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading StatefulSet %s/%s: %w", monitoring, prometheus, err)
	}
	obs.Prometheus = set
	if available(set) {
		return nil
	}
	claims, pods := &corev1.PersistentVolumeClaimList{}, &corev1.PodList{}
	if err := hosted.List(ctx, claims, client.InNamespace(monitoring), client.Limit(page)); err != nil {
		return fmt.Errorf("listing volume claims of %s: %w", monitoring, err)
	}
	if err := hosted.List(ctx, pods, client.InNamespace(monitoring), client.Limit(page)); err != nil {
		return fmt.Errorf("listing pods of %s: %w", monitoring, err)
	}
	obs.Claims, obs.Pods = claims.Items, pods.Items
	return nil
}

// pages reads a list page by page.
func pages(ctx context.Context, hosted client.Reader, list client.ObjectList, each func()) error {
	for range maxPages {
		if err := hosted.List(ctx, list, client.Limit(page), client.Continue(list.GetContinue())); err != nil {
			return err
		}
		if each(); list.GetContinue() == "" {
			return nil
		}
	}
	return nil // a cluster of this size is judged by what was seen
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func available(set *appsv1.StatefulSet) bool {
	return set.Status.ObservedGeneration >= set.Generation && set.Status.AvailableReplicas >= ptr.Deref(set.Spec.Replicas, 1)
}

// PlanFor says what is missing, and what to delete for it. What was made after the restoration is never deleted, so a look that is repeated does no harm.
func PlanFor(obs Observed) Plan {
	if !obs.Payload {
		return Plan{Waiting: waitingForNodes(obs)}
	}
	switch {
	case obs.Prometheus == nil:
		return Plan{Waiting: fmt.Sprintf("there is no StatefulSet %s/%s", monitoring, prometheus)}
	case available(obs.Prometheus):
		return Plan{}
	}
	plan := Plan{Waiting: fmt.Sprintf("%d of %d pods of StatefulSet %s/%s are available", obs.Prometheus.Status.AvailableReplicas, ptr.Deref(obs.Prometheus.Spec.Replicas, 1), monitoring, prometheus)}
	stale := map[string]bool{}
	for i := range obs.Claims {
		claim := &obs.Claims[i]
		if !claim.CreationTimestamp.Time.Before(obs.Restored) {
			continue
		}
		stale[claim.Name] = true
		if claim.DeletionTimestamp.IsZero() {
			plan.Delete = append(plan.Delete, claim)
		}
	}
	for i := range obs.Pods {
		pod := &obs.Pods[i]
		owner := metav1.GetControllerOf(pod)
		if owner == nil || owner.UID != obs.Prometheus.UID || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if pod.CreationTimestamp.Time.Before(obs.Restored) || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && stale[v.PersistentVolumeClaim.ClaimName]
		}) {
			plan.Delete = append(plan.Delete, pod)
		}
	}
	return plan
}

// waitingForNodes says what a cluster of a Kubernetes release lacks. Without nodes there is nothing to wait for: nothing runs, as before.
func waitingForNodes(obs Observed) string {
	if obs.NotReady > 0 {
		return fmt.Sprintf("%d of %d nodes of the backup are not ready; delete those that are gone for good", obs.NotReady, obs.Nodes)
	}
	if obs.Nodes == 0 {
		return ""
	}
	missing := 0
	for i := range obs.System {
		d := &obs.System[i]
		if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < ptr.Deref(d.Spec.Replicas, 1) {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Sprintf("%d of %d deployments in %s are not available", missing, len(obs.System), systemPods)
	}
	return ""
}

// Apply deletes what the plan says, each object only if it is the one that was looked at.
func Apply(ctx context.Context, hosted client.Client, plan Plan) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var errs []error
	for _, obj := range plan.Delete {
		err := hosted.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %T %s/%s: %w", obj, obj.GetNamespace(), obj.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// Condition is HostedClusterRestoredFromBackup after a look.
func Condition(plan Plan) metav1.Condition {
	if plan.Waiting == "" {
		return conditions.True(hyperv1.HostedClusterRestoredFromBackup, reason, "Hosted cluster recovery finished")
	}
	return conditions.False(hyperv1.HostedClusterRestoredFromBackup, reason, "Hosted cluster recovery not finished yet: "+plan.Waiting)
}
