package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

// Health returns an error until a hosted cluster is as it should be: Available, at its release, its API answers, and its nodes are Ready. One that waits
// for room is as it should be, too.
func Health(ctx context.Context, w *world.World, cluster int) error {
	hc := &hyperv1.HostedCluster{}
	key := world.Key(cluster)
	if err := w.Client.Get(ctx, key, hc); err != nil {
		return err
	}
	is := func(kind string) *metav1.Condition {
		if c := meta.FindStatusCondition(hc.Status.Conditions, kind); c != nil {
			return c
		}
		return &metav1.Condition{Message: "nothing is said yet"}
	}
	if is(hyperv1.ControlPlaneAdmitted).Reason == "WaitingForCapacity" {
		return nil
	}
	for kind, want := range map[string]metav1.ConditionStatus{
		hyperv1.HostedClusterAvailable: metav1.ConditionTrue, hyperv1.HostedClusterProgressing: metav1.ConditionFalse, hyperv1.HostedClusterDegraded: metav1.ConditionFalse,
	} {
		// What was said before the last change says nothing about it.
		if c := is(kind); c.Status != want || c.ObservedGeneration != hc.Generation {
			return fmt.Errorf("%s of %s is %s for generation %d, want %s for %d: %s %s", kind, key, c.Status, c.ObservedGeneration, want, hc.Generation, c.Reason, c.Message)
		}
	}
	cfg, err := w.Hosted(ctx, cluster)
	if err != nil {
		return err
	}
	c, err := world.NewClient(cfg)
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes); err != nil {
		return fmt.Errorf("the API of %s: %w", key, err)
	}
	return errors.Join(nodesReady(nodes.Items), poolsReady(ctx, w, key, len(nodes.Items)))
}

func nodesReady(nodes []corev1.Node) error {
	for _, n := range nodes {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return fmt.Errorf("node %s is not Ready: %s", n.Name, c.Message)
			}
		}
	}
	return nil
}

// poolsReady wants as many nodes as NodePools have replicas, and no rollout.
func poolsReady(ctx context.Context, w *world.World, key client.ObjectKey, nodes int) error {
	pools := &hyperv1.NodePoolList{}
	if err := w.Client.List(ctx, pools, client.InNamespace(key.Namespace)); err != nil {
		return err
	}
	want := 0
	for i := range pools.Items {
		p := &pools.Items[i]
		if p.Spec.ClusterName != key.Name {
			continue
		}
		if p.Spec.Replicas != nil {
			want += int(*p.Spec.Replicas)
		}
		if err := poolRests(p); err != nil {
			return err
		}
	}
	if nodes != want {
		return fmt.Errorf("%s has %d nodes, its NodePools want %d", key, nodes, want)
	}
	return nil
}

// poolRests returns an error unless operators have said of the NodePool as it is now that it doesn't roll.
func poolRests(p *hyperv1.NodePool) error {
	said := false
	for _, c := range p.Status.Conditions {
		if c.Type != hyperv1.NodePoolUpdatingConfigConditionType {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			return fmt.Errorf("NodePool %s rolls: %s", p.Name, c.Message)
		}
		said = c.ObservedGeneration == p.Generation
	}
	if !said {
		return fmt.Errorf("nobody has said whether generation %d of NodePool %s rolls", p.Generation, p.Name)
	}
	return nil
}

// OperatorsUp returns an error until all Deployments of the installation have as many ready pods as they want. A kubelet starts what was killed several times
// later and later, so after a storm this takes longer than after a kill.
func OperatorsUp(ctx context.Context, w *world.World) error {
	for _, namespace := range world.OperatorNamespaces {
		list := &appsv1.DeploymentList{}
		if err := w.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("namespace %s has no Deployment", namespace)
		}
		for i := range list.Items {
			if d := &list.Items[i]; d.Spec.Replicas != nil && d.Status.ReadyReplicas < *d.Spec.Replicas {
				return fmt.Errorf("%d of %d pods of Deployment %s/%s are ready", d.Status.ReadyReplicas, *d.Spec.Replicas, d.Namespace, d.Name)
			}
		}
	}
	return nil
}

// Recovered waits until a hosted cluster is as it should be.
func Recovered(ctx context.Context, w *world.World, cluster int, bound time.Duration) error {
	if err := world.Until(ctx, bound, func(ctx context.Context) error { return Health(ctx, w, cluster) }); err != nil {
		return fmt.Errorf("%s: %w", plan.ClusterName(cluster), err)
	}
	return nil
}

// Heard returns an error until operators have said of the packages that exist what their last change came to. One with a bad version is heard of, too.
func Heard(ctx context.Context, w *world.World) error {
	var fleet v1alpha1.HostedClusterPackageList
	var cluster v1alpha1.ClusterPackageList
	var own v1alpha1.PackageList
	for _, list := range []client.ObjectList{&fleet, &cluster} {
		if err := w.Client.List(ctx, list); err != nil {
			return err
		}
	}
	if err := w.Client.List(ctx, &own, client.InNamespace(world.Tenant)); err != nil {
		return err
	}
	heard := func(o client.Object, conditions []metav1.Condition) error {
		if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAvailable); c == nil || c.ObservedGeneration != o.GetGeneration() {
			return fmt.Errorf("nobody has said what generation %d of %T %s came to", o.GetGeneration(), o, o.GetName())
		}
		return nil
	}
	var errs []error
	for i := range fleet.Items {
		errs = append(errs, heard(&fleet.Items[i], fleet.Items[i].Status.Conditions))
	}
	for i := range cluster.Items {
		errs = append(errs, heard(&cluster.Items[i], cluster.Items[i].Status.Conditions))
	}
	for i := range own.Items {
		errs = append(errs, heard(&own.Items[i], own.Items[i].Status.Conditions))
	}
	return errors.Join(errs...)
}
