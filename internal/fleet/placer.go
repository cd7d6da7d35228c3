package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/placement"
	"hcp.internal/platform/internal/sizing"
)

const (
	// pairLabel is on the ConfigMap that is the claim of a pair; its value is the name of the pair, and placement.ObjectName of that is the ConfigMap's.
	pairLabel = "hypershift.openshift.io/pairlabel"
	// memoryLimitLabel of a node is GOMEMLIMIT of API servers there, before that of the size.
	memoryLimitLabel = "hypershift.openshift.io/request-serving-gomemlimit"
	// maxClaims bounds how many claims are read.
	maxClaims = 5000
	// emptying is how often it is looked whether pods have left a node.
	emptying = 30 * time.Second
)

// placedRules are the transitions that are told as events.
var placedRules = []events.Rule{
	{Condition: hyperv1.RequestServingNodesReady, Status: metav1.ConditionTrue, Reason: placement.Claimed, Action: "Place"},
	{Condition: hyperv1.RequestServingNodesReady, Status: metav1.ConditionTrue, Reason: placement.Resizing, Action: "Place"},
	{Condition: hyperv1.RequestServingNodesReady, Status: metav1.ConditionFalse, Warning: true, Action: "Place"},
}

func dedicated(hc *hyperv1.HostedCluster) bool {
	return hc.Annotations[hyperv1.TopologyAnnotation] == hyperv1.DedicatedRequestServingComponentsTopology
}

// place gives a hosted cluster nodes of its own, and then what follows from its size.
func (s *Scheduler) place(ctx context.Context, hc *hyperv1.HostedCluster, size *schedulingv1alpha1.SizeConfiguration) (ctrl.Result, error) {
	c := placement.Cluster{Namespace: names.NamespaceOf(hc), Name: hc.Name, HostedNamespace: hc.Namespace, Size: size.Name,
		Places: placement.PlacesFor(hc.Spec.ControllerAvailabilityPolicy)}
	w, nodes, err := s.world(ctx, c.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := placement.Decide(c, w)
	if err := s.take(ctx, hc, c, plan, nodes); err != nil {
		return ctrl.Result{}, err
	}
	if plan.Placed {
		effects := sizing.Effects(size)
		effects[hyperv1.RequestServingNodeAdditionalSelectorAnnotation] = hyperv1.ClusterSizeLabel + "=" + size.Name
		for _, n := range w.Nodes {
			if limit := n.Labels[memoryLimitLabel]; limit != "" && n.Labels[placement.ClusterLabel] == c.Namespace {
				effects[hyperv1.KubeAPIServerGOMemoryLimitAnnotation] = limit
			}
		}
		if err := s.annotate(ctx, hc, effects); err != nil {
			return ctrl.Result{}, err
		}
	}
	for _, name := range plan.Release {
		if err := s.give(ctx, nodes[name], nil); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := s.await(ctx, c, plan, w.Pairs); err != nil {
		return ctrl.Result{}, err
	}
	if err := s.report(ctx, hc, plan); err != nil {
		return ctrl.Result{}, err
	}
	if plan.Waits {
		return ctrl.Result{RequeueAfter: emptying}, nil
	}
	return ctrl.Result{}, nil
}

// take writes the claim, and then the nodes.
func (s *Scheduler) take(ctx context.Context, hc *hyperv1.HostedCluster, c placement.Cluster, plan placement.Plan, nodes map[string]*corev1.Node) error {
	if plan.Pair != "" {
		if err := s.claim(ctx, hc, plan.Pair); err != nil {
			return err
		}
	}
	for _, name := range plan.Take {
		if err := s.give(ctx, nodes[name], &c); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("gave a node to a hosted cluster", "node", name, "pair", plan.Own, "size", c.Size)
	}
	return nil
}

func (s *Scheduler) world(ctx context.Context, namespace string) (placement.World, map[string]*corev1.Node, error) {
	return World(ctx, s.Client, s.Live, namespace)
}

// servingNodes are the nodes for requests of single clusters: those that may be claimed, or are.
func servingNodes(ctx context.Context, c client.Reader) ([]corev1.Node, error) {
	list := &corev1.NodeList{}
	if err := c.List(ctx, list, client.MatchingLabels{hyperv1.RequestServingComponentLabel: "true"}); err != nil {
		return nil, fmt.Errorf("listing nodes for request-serving components: %w", err)
	}
	return list.Items, nil
}

// World reads the nodes, where pods of a control plane are, and, live, the claims.
func World(ctx context.Context, c, live client.Reader, namespace string) (w placement.World, nodes map[string]*corev1.Node, _ error) {
	list, err := servingNodes(ctx, c)
	if err != nil {
		return w, nil, err
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return w, nil, fmt.Errorf("listing pods of namespace %s: %w", namespace, err)
	}
	pairs, err := claimed(ctx, live)
	if err != nil {
		return w, nil, err
	}
	w, nodes = placement.World{Pairs: pairs, Busy: map[string]bool{}}, map[string]*corev1.Node{}
	for i := range list {
		n := &list[i]
		nodes[n.Name] = n
		w.Nodes = append(w.Nodes, placement.Node{Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Usable: usable(n)})
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			w.Busy[p.Spec.NodeName] = true
		}
	}
	return w, nodes, nil
}

// claimed are the pairs that hosted clusters have: the namespace of the control plane by the name of the pair.
func claimed(ctx context.Context, live client.Reader) (map[string]string, error) {
	owners, err := claims(ctx, live)
	if err != nil {
		return nil, err
	}
	pairs := map[string]string{}
	for pair, owner := range owners {
		pairs[pair] = names.ControlPlaneNamespace(owner.Namespace, owner.Name)
	}
	return pairs, nil
}

// claims are the HostedClusters that have pairs, by the name of the pair.
func claims(ctx context.Context, live client.Reader) (map[string]client.ObjectKey, error) {
	list, owners := &corev1.ConfigMapList{}, map[string]client.ObjectKey{}
	if err := live.List(ctx, list, client.InNamespace(placement.Namespace), client.HasLabels{pairLabel}, client.Limit(maxClaims)); err != nil {
		return nil, fmt.Errorf("listing claims of pairs in namespace %s: %w", placement.Namespace, err)
	}
	for i := range list.Items {
		cm := &list.Items[i]
		owners[cm.Labels[pairLabel]] = client.ObjectKey{Namespace: cm.Data["clusterNamespace"], Name: cm.Data["clusterName"]}
	}
	return owners, nil
}

// ensureNamespace makes the namespace of claims and placeholders.
func (s *Scheduler) ensureNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{}
	if err := s.Live.Get(ctx, client.ObjectKey{Name: placement.Namespace}, ns); !apierrors.IsNotFound(err) {
		return client.IgnoreNotFound(err)
	}
	ns = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.Namespace, Labels: map[string]string{"hypershift.openshift.io/component": "placeholders"}}}
	if err := s.Live.Create(ctx, ns, client.FieldOwner(schedulerName)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", placement.Namespace, err)
	}
	return nil
}

func usable(n *corev1.Node) bool {
	if n.Spec.Unschedulable || !n.DeletionTimestamp.IsZero() {
		return false
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// claim writes down whose a pair is. It must not be there yet.
func (s *Scheduler) claim(ctx context.Context, hc *hyperv1.HostedCluster, pair string) error {
	if err := s.ensureNamespace(ctx); err != nil {
		return err
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: placement.Namespace, Name: placement.ObjectName(pair), Labels: map[string]string{pairLabel: pair}},
		Data:       map[string]string{"clusterNamespace": hc.Namespace, "clusterName": hc.Name},
	}
	err := s.Live.Create(ctx, cm, client.FieldOwner(schedulerName))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("claiming pair %s: %w", pair, outcome.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("claiming pair %s for HostedCluster %s: %w", pair, names.BackReference(hc), err)
	}
	return nil
}

// give makes a node that of a cluster, or nobody's. The patch is for the node as it was read: two clusters never get the same.
func (s *Scheduler) give(ctx context.Context, n *corev1.Node, c *placement.Cluster) error {
	node := placement.Node{Labels: n.Labels, Taints: n.Spec.Taints}
	labels, taints := placement.Released(node)
	if c != nil {
		labels, taints = placement.Given(*c, node)
	}
	body, err := json.Marshal(map[string]any{
		"metadata": patch.Metadata{ResourceVersion: n.ResourceVersion, Labels: labels},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	err = s.Live.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, client.RawPatch(types.MergePatchType, body), client.FieldOwner(schedulerName))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling node %s: %w", n.Name, err)
	}
	return nil
}

func (s *Scheduler) report(ctx context.Context, hc *hyperv1.HostedCluster, plan placement.Plan) error {
	before := hc.DeepCopy()
	status := metav1.ConditionFalse
	if plan.Placed {
		status = metav1.ConditionTrue
	}
	c := conditions.New(hyperv1.RequestServingNodesReady, status, plan.Reason, plan.Message)
	c.ObservedGeneration = hc.Generation
	conditions.Set(&hc.Status.Conditions, s.Clock.Now(), c)
	if err := patch.Status(ctx, s.Client, before, hc); err != nil {
		return err
	}
	events.Transitions(s.Events, hc, placedRules, before.Status.Conditions, hc.Status.Conditions)
	return nil
}

// release takes all nodes and the claim from a cluster that is gone, or that no longer asks for nodes of its own; it waits until no pod is there.
func (s *Scheduler) release(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	namespace := names.ControlPlaneNamespace(key.Namespace, key.Name)
	w, nodes, err := s.world(ctx, namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	var errs []error
	waits := false
	for _, n := range w.Nodes {
		switch {
		case n.Labels[placement.ClusterLabel] != namespace:
		case w.Busy[n.Name]:
			waits = true
		default:
			ctrl.LoggerFrom(ctx).Info("released a node", "node", n.Name)
			errs = append(errs, s.give(ctx, nodes[n.Name], nil))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	if err := s.await(ctx, placement.Cluster{Namespace: namespace}, placement.Plan{Placed: true}, nil); err != nil {
		return ctrl.Result{}, err
	}
	if waits {
		return ctrl.Result{RequeueAfter: emptying}, nil
	}
	for pair, owner := range w.Pairs {
		if owner != namespace {
			continue
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: placement.Namespace, Name: placement.ObjectName(pair)}}
		if err := s.Live.Delete(ctx, cm); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("giving back pair %s: %w", pair, err)
		}
	}
	s.wake()
	return ctrl.Result{}, nil
}
