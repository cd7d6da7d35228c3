package nodepool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/platform"
)

// deletionPoll is how often what remains is looked at when no event comes.
const deletionPoll = 5 * time.Second

// maxNamed is how many machines a message names.
const maxNamed = 5

// remains is what of a pool is still there.
type remains struct {
	// clusterGoes: the HostedCluster is being deleted, too, or gone already.
	clusterGoes bool

	workloads []client.Object // MachineDeployment, MachineSets, MachineHealthCheck
	machines  []clusterv1.Machine
	templates []metav1.PartialObjectMetadata
	others    []client.Object // Secrets, ConfigMaps
}

// teardown is the next move of a deletion. The zero value means that nothing is left.
type teardown struct {
	unpause []client.Object
	abandon []*clusterv1.Machine // to be removed without regard for what runs there
	delete  []client.Object
	// waiting says what is waited for, for people; empty: nothing.
	waiting string
}

// planTeardown decides the next move. Machines go first, then what they were made from: a machine that is just being made still needs it.
func planTeardown(r remains) teardown {
	t := teardown{}
	for _, obj := range r.workloads {
		if _, paused := obj.GetAnnotations()[machines.PausedAnnotation]; paused {
			t.unpause = append(t.unpause, obj) // nothing that is paused can be removed
		}
		if obj.GetDeletionTimestamp().IsZero() {
			t.delete = append(t.delete, obj)
		}
	}
	if r.clusterGoes {
		t.abandon = notAbandoned(r.machines)
	}
	if len(r.machines) > 0 {
		t.waiting = "there are still Machines: " + describe(r.machines)
		for i := range r.machines {
			// What no MachineSet owns, because that is gone already, goes all the same.
			if m := &r.machines[i]; m.DeletionTimestamp.IsZero() && len(r.workloads) == 0 {
				t.delete = append(t.delete, m)
			}
		}
		return t
	}
	if len(r.workloads) > 0 {
		t.waiting = fmt.Sprintf("waiting for %s", kinds(r.workloads))
		return t
	}
	for i := range r.templates {
		t.delete = append(t.delete, &r.templates[i])
	}
	t.delete = append(t.delete, r.others...)
	return t
}

// abandonedAnnotations have Cluster API remove a machine without draining its node and without waiting for volumes.
var abandonedAnnotations = []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation}

// notAbandoned are machines whose node would be drained first. When the cluster goes there is nowhere for pods to go to, and its API, which
// a drain needs, may be dead: a drain would end when its time limit does, or never.
func notAbandoned(list []clusterv1.Machine) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for i := range list {
		for _, name := range abandonedAnnotations {
			if _, set := list[i].Annotations[name]; !set {
				out = append(out, &list[i])
				break
			}
		}
	}
	return out
}

// kinds lists objects.
func kinds(list []client.Object) string {
	var names []string
	for _, obj := range list {
		names = append(names, fmt.Sprintf("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1beta2."), obj.GetName()))
	}
	return strings.Join(names, ", ")
}

// describe says which machines are left, since when, and why.
func describe(list []clusterv1.Machine) string {
	var parts []string
	for i := range list[:min(len(list), maxNamed)] {
		m := &list[i]
		part := m.Name
		if !m.DeletionTimestamp.IsZero() {
			part += " (being deleted since " + m.DeletionTimestamp.UTC().Format(time.RFC3339)
			for _, c := range m.Status.Conditions {
				if c.Type == clusterv1.MachineDeletingCondition && c.Message != "" {
					part += ": " + strings.ReplaceAll(c.Message, "\n", " ")
				}
			}
			part += ")"
		}
		parts = append(parts, part)
	}
	if more := len(list) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// finalize makes the next move of a deletion, and removes our finalizer when nothing is left. The HostedCluster may be gone.
func (r *Reconciler) finalize(ctx context.Context, pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(pool, Finalizer) {
		return ctrl.Result{}, nil
	}
	left, err := r.remains(ctx, pool)
	if err != nil {
		return ctrl.Result{}, err
	}
	left.clusterGoes = hc == nil || !hc.DeletionTimestamp.IsZero()
	next := planTeardown(left)
	errs := []error{r.setPaused(ctx, next.unpause, nil), r.abandon(ctx, next.abandon)}
	for _, obj := range next.delete {
		uid := obj.GetUID() // keeps us from deleting a successor of the same name
		err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	if next.waiting == "" {
		next.waiting = r.dropImages(ctx, pool)
	}
	if next.waiting == "" {
		ctrl.LoggerFrom(ctx).Info("removed the pool", "since", pool.DeletionTimestamp)
		return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, pool, Finalizer)
	}
	before := pool.DeepCopy()
	pool.Status.Replicas = 0
	setCondition(&pool.Status.Conditions, bad(hyperv1.NodePoolReadyConditionType, ReasonDeleting, next.waiting), pool.Generation, r.Clock.Now())
	r.tellSlowDeletion(pool, next.waiting)
	return ctrl.Result{RequeueAfter: deletionPoll}, patch.Status(ctx, r.Client, before, pool)
}

// dropPatience is how long a deletion waits for kept boot images to be removed: where they are may be gone, with its cluster.
const dropPatience = 10 * time.Minute

// dropImages removes the boot images that the platform keeps for a pool without machines. It says what it waits for; empty: nothing.
func (r *Reconciler) dropImages(ctx context.Context, pool *hyperv1.NodePool) string {
	p, err := r.Platforms.For(pool.Spec.Platform.Type)
	keeper, ok := p.(platform.ImageKeeper)
	if err != nil || !ok {
		return ""
	}
	err = keeper.DropImages(ctx, r.Client, r.Live, pool, nil)
	if err == nil {
		return ""
	}
	if r.Clock.Since(pool.DeletionTimestamp.Time) > dropPatience {
		ctrl.LoggerFrom(ctx).Info("boot images of a NodePool that is removed stay", "error", err.Error())
		return ""
	}
	return "boot images are not removed yet: " + err.Error()
}

// remains reads what is left from the API server itself: a stale read would leak a machine.
func (r *Reconciler) remains(ctx context.Context, pool *hyperv1.NodePool) (remains, error) {
	left := remains{}
	namespace, key := names.ControlPlaneNamespace(pool.Namespace, pool.Spec.ClusterName), keyOf(pool)
	ours := func(obj client.Object) bool { return obj.GetAnnotations()[hyperv1.NodePoolAnnotation] == key }
	if r.ClusterAPI {
		mds, sets, mhcs, list := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineHealthCheckList{}, &clusterv1.MachineList{}
		for _, l := range []client.ObjectList{mds, sets, mhcs, list} {
			if err := r.Live.List(ctx, l, client.InNamespace(namespace)); err != nil {
				return left, fmt.Errorf("listing %T of NodePool %s: %w", l, key, err)
			}
		}
		for i := range mds.Items {
			if ours(&mds.Items[i]) {
				left.workloads = append(left.workloads, &mds.Items[i])
			}
		}
		for i := range sets.Items {
			if poolOfSet(&sets.Items[i]) == key {
				left.workloads = append(left.workloads, &sets.Items[i])
			}
		}
		for i := range mhcs.Items {
			if ours(&mhcs.Items[i]) {
				left.workloads = append(left.workloads, &mhcs.Items[i])
			}
		}
		for i := range list.Items {
			if ours(&list.Items[i]) {
				left.machines = append(left.machines, list.Items[i])
			}
		}
		if p, err := platform.For(pool.Spec.Platform.Type); err == nil && p.Traits().Managed {
			if err := r.remainingTemplates(ctx, p.Traits().TemplateKind, namespace, key, &left); err != nil {
				return left, err
			}
		}
	}
	return left, r.remainingOthers(ctx, namespace, pool, &left)
}

func (r *Reconciler) remainingTemplates(ctx context.Context, gvk schema.GroupVersionKind, namespace, key string, left *remains) error {
	list := &metav1.PartialObjectMetadataList{}
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := r.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) { // a platform that isn't installed has none
			return nil
		}
		return fmt.Errorf("listing machine templates of NodePool %s: %w", key, err)
	}
	for _, t := range list.Items {
		if t.Annotations[hyperv1.NodePoolAnnotation] == key {
			left.templates = append(left.templates, t)
		}
	}
	return nil
}

func (r *Reconciler) remainingOthers(ctx context.Context, namespace string, pool *hyperv1.NodePool, left *remains) error {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.Live.List(ctx, secrets, client.InNamespace(namespace), client.MatchingLabels(ownLabels())); err != nil {
		return fmt.Errorf("listing Secrets of NodePool %s: %w", keyOf(pool), err)
	}
	for i := range secrets.Items {
		if s := &secrets.Items[i]; s.Annotations[hyperv1.NodePoolAnnotation] == keyOf(pool) {
			left.others = append(left.others, s)
		}
	}
	maps := &metav1.PartialObjectMetadataList{}
	maps.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := r.Live.List(ctx, maps, client.InNamespace(namespace), client.MatchingLabels{hyperv1.NodePoolLabel: pool.Name}); err != nil {
		return fmt.Errorf("listing ConfigMaps of NodePool %s: %w", keyOf(pool), err)
	}
	for i := range maps.Items {
		if cm := &maps.Items[i]; cm.Annotations[hyperv1.NodePoolAnnotation] == keyOf(pool) {
			left.others = append(left.others, cm)
		}
	}
	return nil
}

// sweepOrphans removes the Secrets of a pool that is gone without our help, because somebody took the finalizer off: their tokens still give
// away the configuration of machines.
func (r *Reconciler) sweepOrphans(ctx context.Context, pool client.ObjectKey) error {
	if !r.Indexed {
		return nil
	}
	secrets := &corev1.SecretList{}
	if err := r.Client.List(ctx, secrets, client.MatchingFields{poolIndex: pool.String()}); err != nil {
		return fmt.Errorf("listing Secrets of NodePool %s, which is gone: %w", pool, err)
	}
	var errs []error
	for i := range secrets.Items {
		s := &secrets.Items[i]
		if s.Labels[hyperv1.ManagedByKarpenterLabel] == "true" || !s.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, s, client.Preconditions{UID: &s.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting Secret %s of a NodePool that is gone: %w", client.ObjectKeyFromObject(s), err))
		}
	}
	return errors.Join(errs...)
}
