package inplace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/release"
)

// Reconciler changes the machines of MachineSets whose target isn't their current configuration.
//
// It is the only writer of the nodes' desiredConfig, of the progress annotations, and, at the end, of the current version.
type Reconciler struct {
	Management client.Client // uncached: it counts nodes under way
	Hosted     client.Client // uncached
	// Image of the daemon that works on nodes; empty: it is in the release that machines are changed to, or nowhere, and upgrades wait.
	Image string
	// Releases reads releases of OpenShift; nil: the hosted cluster has none.
	Releases release.Provider
}

// Matters lets MachineSets through that are changed in place, when what decides about that changes.
func Matters() predicate.Predicate {
	keys := []string{
		hyperv1.NodePoolTargetConfigVersionAnnotation, hyperv1.NodePoolCurrentConfigVersionAnnotation, hyperv1.NodePoolMaxUnavailableAnnotation,
	}
	ours := func(o client.Object) bool { return o.GetAnnotations()[keys[0]] != "" }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return ours(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return ours(e.ObjectNew) && slices.ContainsFunc(keys, func(k string) bool { return e.ObjectOld.GetAnnotations()[k] != e.ObjectNew.GetAnnotations()[k] })
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Reconcile makes one pass for the MachineSet of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	set := &clusterv1.MachineSet{}
	if err := r.Management.Get(ctx, req.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading MachineSet %s: %w", req, err))
	}
	if !set.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	w, err := r.observe(ctx, set)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := planFor(w.Observed)
	err = r.carryOut(ctx, set, w, plan)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("changing the machines of MachineSet %s: %w", req, err)
	}
	return ctrl.Result{RequeueAfter: plan.Recheck}, nil
}

func (r *Reconciler) carryOut(ctx context.Context, set *clusterv1.MachineSet, w world, plan Plan) error {
	daemons := settings{}
	if len(plan.CreatePods) > 0 {
		var err error
		if daemons, err = r.settings(ctx, set, w); err != nil {
			return err
		}
	}
	if len(plan.CreatePods) > 0 && daemons.image == "" {
		plan.SetDesired, plan.CreatePods, plan.True = nil, nil, nil
		plan.False = say("the release has no image that changes nodes in place; replace the machines instead (management.upgradeType Replace)")
	}
	applier := apply.New(r.Hosted, names.ConfigOperator)
	if plan.Objects {
		if err := applier.All(ctx, sharedObjects(set.Name, w.Target, w.payload)...); err != nil {
			return err
		}
	}
	var errs []error
	for _, node := range plan.DeletePods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(set.Name), Name: daemonPrefix + node}}
		errs = append(errs, client.IgnoreNotFound(r.Hosted.Delete(ctx, pod)))
	}
	for _, node := range plan.SetDesired {
		errs = append(errs, r.tell(ctx, node, w.Target))
	}
	for _, node := range plan.CreatePods {
		// Created and not applied: a pod can't be changed, and one that is being deleted must be gone first.
		errs = append(errs, client.IgnoreAlreadyExists(r.Hosted.Create(ctx, daemon(set.Name, node, daemons))))
	}
	for i := range w.machines {
		errs = append(errs, r.mark(ctx, &w.machines[i], plan.Mark, w.Version))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if plan.Complete {
		// The namespace takes the Secret and what is left of pods along. It goes before the MachineSet says that all is done:
		// afterwards nobody would look again.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(set.Name)}}
		if err := r.Hosted.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing what the upgrade left: %w", err)
		}
	}
	return r.report(ctx, set, w, plan)
}

// tell sets a node's desired configuration.
func (r *Reconciler) tell(ctx context.Context, name, target string) error {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	node.Name = name
	if err := r.Hosted.Patch(ctx, node, patch.Annotation(desiredConfig, &target)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("telling Node %s its configuration: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("told a node its configuration", "node", name, "version", target)
	return nil
}

// mark notes on a Machine which release it has now.
func (r *Reconciler) mark(ctx context.Context, m *clusterv1.Machine, marked []string, version string) error {
	for _, name := range marked {
		if name != m.Name {
			continue
		}
		before := m.DeepCopy()
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, hyperv1.NodePoolReleaseVersionAnnotation, version)
		if err := r.Management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("noting the release of Machine %s: %w", m.Name, err)
		}
	}
	return nil
}

// report writes the annotations of the MachineSet, when they differ, in one patch for the version that was read: the target may
// have changed meanwhile, and must not be noted as reached then.
func (r *Reconciler) report(ctx context.Context, set *clusterv1.MachineSet, w world, plan Plan) error {
	before := set.DeepCopy()
	want := map[string]*string{
		hyperv1.NodePoolUpgradeInProgressTrueAnnotation:  plan.True,
		hyperv1.NodePoolUpgradeInProgressFalseAnnotation: plan.False,
	}
	if plan.Complete {
		want[hyperv1.NodePoolCurrentConfigVersionAnnotation] = &w.Target
	}
	changed := false
	for key, value := range want {
		have := annotation(set, key)
		switch {
		case value == nil && have != nil:
			delete(set.Annotations, key)
			changed = true
		case value != nil && (have == nil || *have != *value):
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, *value)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	if err := r.Management.Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}
	if plan.Complete {
		ctrl.LoggerFrom(ctx).Info("machines are changed", "machineSet", klog.KObj(set), "version", w.Target)
	}
	return nil
}
