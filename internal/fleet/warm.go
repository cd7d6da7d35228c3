package fleet

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/placement"
)

// warmerName is that of the controller of placeholders.
const warmerName = "placeholderscheduler"

// maxPlaceholders bounds how many Deployments are looked at.
const maxPlaceholders = 5000

// Warmer keeps pairs of nodes ready for hosted clusters that come: placeholders, which have an autoscaler of nodes add these. One pass is for all sizes.
type Warmer struct {
	// Client reads the sizes and nodes, Live everything else, and writes.
	Client client.Client
	Live   client.Client
	// Image is ours.
	Image string
	// Scheduler knows the claims.
	Scheduler *Scheduler
}

// Reconcile makes the placeholders of all sizes, and removes those that nobody asks for.
func (w *Warmer) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	spec, ok, err := configuration(ctx, w.Client)
	if !ok || err != nil {
		return ctrl.Result{}, err
	}
	nodes, err := w.nodes(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted := placement.Warm(spec.Sizes, nodes)
	list, err := placeholders(ctx, w.Live)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(wanted)+len(list) == 0 {
		return ctrl.Result{}, nil
	}
	claims, err := claimed(ctx, w.Scheduler.Live)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(wanted) > 0 {
		if err := w.Scheduler.ensureNamespace(ctx); err != nil {
			return ctrl.Result{}, err
		}
	}
	applier, known := apply.New(w.Live, warmerName), map[string]bool{}
	var errs []error
	for _, p := range wanted {
		known[p.Name] = true
		errs = append(errs, applier.Apply(ctx, p.Deployment(placement.Namespace, w.Image, claims)))
	}
	for i := range list {
		if d := &list[i]; !known[d.Name] && d.Labels[hyperv1.ClusterNameLabel] == "" { // others stand for nodes of one cluster
			errs = append(errs, applier.Delete(ctx, d))
		}
	}
	return ctrl.Result{}, errors.Join(errs...)
}

// placeholders are all that there are: of sizes, and of clusters that lack nodes.
func placeholders(ctx context.Context, live client.Reader) ([]appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	if err := live.List(ctx, list, client.InNamespace(placement.Namespace), client.HasLabels{hyperv1.HostedClusterSizeLabel}, client.Limit(maxPlaceholders)); err != nil {
		return nil, fmt.Errorf("listing placeholders in namespace %s: %w", placement.Namespace, err)
	}
	return list.Items, nil
}

// nodes are those that may be claimed, or are.
func (w *Warmer) nodes(ctx context.Context) ([]placement.Node, error) {
	list, err := servingNodes(ctx, w.Client)
	if err != nil {
		return nil, err
	}
	nodes := make([]placement.Node, 0, len(list))
	for i := range list {
		nodes = append(nodes, placement.Node{Name: list[i].Name, Labels: list[i].Labels})
	}
	return nodes, nil
}

// await keeps a placeholder for the nodes that a cluster lacks, as long as it does.
func (s *Scheduler) await(ctx context.Context, c placement.Cluster, plan placement.Plan, claimed map[string]string) error {
	if s.Image == "" {
		return nil
	}
	applier := apply.New(s.Live, schedulerName)
	key := client.ObjectKey{Namespace: placement.Namespace, Name: c.Namespace}
	p := placement.Awaited(c, plan)
	if p == nil {
		old, err := read.Optional(ctx, s.Live, key, &appsv1.Deployment{})
		if old == nil || err != nil {
			return err
		}
		return applier.Delete(ctx, old)
	}
	if err := s.ensureNamespace(ctx); err != nil {
		return err
	}
	d := p.Deployment(placement.Namespace, s.Image, claimed)
	d.Labels[hyperv1.ClusterNameLabel], d.Labels[hyperv1.ClusterNamespaceLabel] = c.Name, c.HostedNamespace
	return applier.Apply(ctx, d)
}
