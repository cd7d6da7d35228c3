package fleet

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/sizing"
)

// Sizer gives HostedClusters their sizes. It is the only writer of the conditions in sizing.Types and of label hosted-cluster-size.
type Sizer struct {
	// Client reads from caches and knows its own writes, in lists, too: how many clusters change at a time depends on it.
	Client client.Client
	Clock  clock.PassiveClock
	// Events may be nil.
	Events events.Recorder
	// Operator is who this is: it leaves clusters of others alone.
	Operator scope.Identity
	// Metrics may be nil.
	Metrics *Metrics
}

// Reconcile decides about one HostedCluster.
func (s *Sizer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := s.Clock.Now()
	hc, again, err := hosted(ctx, s.Client, req.NamespacedName, s.Operator, now)
	if hc == nil || err != nil {
		return ctrl.Result{RequeueAfter: again}, err
	}
	spec, problem, err := sizes(ctx, s.Client)
	if spec == nil || err != nil {
		return ctrl.Result{}, err
	}
	if problem != nil { // the Validator tells of it; one that has a size keeps that
		if conditions.IsTrue(hc.Status.Conditions, hyperv1.ClusterSizeComputed) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, s.apply(ctx, hc, sizing.Unsized(hc, fmt.Sprintf("ClusterSizingConfiguration %s is not valid: %v", sizing.ConfigurationName, problem), now))
	}
	nodes, err := s.nodes(ctx, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	config := sizing.ConfigOf(spec)
	want := config.Sizes.WantedFor(hc, nodes)
	d := sizing.Decide(config, hc, want, nil, now)
	if d.From != "" { // it would change: who else does counts
		fleet, err := s.fleet(ctx)
		if err != nil {
			return ctrl.Result{}, err
		}
		d = sizing.Decide(config, hc, want, fleet, now)
	}
	ctrl.LoggerFrom(ctx).V(1).Info("decided", "size", d.Label, "to", d.To, "why", d.Why, "again", d.Again)
	return ctrl.Result{RequeueAfter: d.Again}, s.apply(ctx, hc, d)
}

// nodes counts those of a cluster.
func (s *Sizer) nodes(ctx context.Context, hc *hyperv1.HostedCluster) (sizing.Nodes, error) {
	hcp, err := read.Optional(ctx, s.Client, client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}, &hyperv1.HostedControlPlane{})
	if err != nil {
		return sizing.Nodes{}, err
	}
	pools, err := operator.NodePoolsOf(ctx, s.Client, hc)
	if err != nil {
		return sizing.Nodes{}, err
	}
	return sizing.CountNodes(hc, hcp, pools), nil
}

// fleet is what all clusters are at.
func (s *Sizer) fleet(ctx context.Context) ([]sizing.Cluster, error) {
	list := &hyperv1.HostedClusterList{}
	if err := s.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing HostedClusters: %w", err)
	}
	now := s.Clock.Now()
	fleet := make([]sizing.Cluster, 0, len(list.Items))
	for i := range list.Items {
		fleet = append(fleet, sizing.ClusterOf(&list.Items[i], now))
	}
	return fleet, nil
}

// apply writes the conditions, and then the label: after a crash between the two the next pass finds by the condition what the label has to be.
func (s *Sizer) apply(ctx context.Context, hc *hyperv1.HostedCluster, d sizing.Decision) error {
	before := hc.DeepCopy()
	replace(&hc.Status.Conditions, d.Conditions)
	// The patch is for this version of the object: a decision that was made from an old one is not written.
	if err := patch.Status(ctx, s.Client, before, hc); err != nil {
		return err
	}
	if d.To != "" {
		s.tell(ctx, hc, d)
	}
	if d.Label == "" || hc.Labels[hyperv1.HostedClusterSizeLabel] == d.Label {
		return nil
	}
	label := patch.Metadata{Labels: map[string]*string{hyperv1.HostedClusterSizeLabel: &d.Label}}
	if err := s.Client.Patch(ctx, hc, label.Patch(), client.FieldOwner(sizerName)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling HostedCluster %s with its size: %w", names.BackReference(hc), err)
	}
	return nil
}

func (s *Sizer) tell(ctx context.Context, hc *hyperv1.HostedCluster, d sizing.Decision) {
	text := fmt.Sprintf("The size is %s: %s", d.To, d.Why)
	if d.From != "" {
		text = fmt.Sprintf("The size changes from %s to %s: %s", d.From, d.To, d.Why)
	}
	events.Event(s.Events, hc, false, "SizeChanged", "Size", text)
	s.Metrics.changed(d.From, d.To)
	ctrl.LoggerFrom(ctx).Info("sized a hosted cluster", "from", d.From, "to", d.To, "why", d.Why)
}

// replace puts conditions in their places, with the times that they have: those of sizes mean since when a size is wanted.
func replace(list *[]metav1.Condition, with []metav1.Condition) {
	for _, c := range with {
		found := false
		for i := range *list {
			if (*list)[i].Type == c.Type {
				(*list)[i], found = c, true
			}
		}
		if !found {
			*list = append(*list, c)
		}
	}
}
