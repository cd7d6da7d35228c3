package inplace

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/patch"
)

func (r *Reconciler) apply(ctx context.Context, set *clusterv1.MachineSet, w world, plan Plan) error {
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
