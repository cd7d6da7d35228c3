//go:build linux

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/local"
)

// waitForWorkers waits until the demo cluster has as many ready nodes as its NodePool asks for. A pool that the user has removed, or
// lets an autoscaler size, is not waited for, and neither is a cluster that is held.
func waitForWorkers(ctx context.Context, c local.Cluster, say local.Say) error {
	management, err := (&connect.Flags{Kubeconfig: c.Kubeconfig}).Client()
	if err != nil {
		return err
	}
	if why, err := heldDemo(ctx, management, c.Clock.Now()); err != nil || why != "" {
		return err // createDemo has said why
	}
	hosted, err := (&connect.Flags{Kubeconfig: c.DemoKubeconfig}).Client()
	if err != nil {
		return err
	}
	p := progress.New(&lines{say: say}, nil)
	return p.Until(ctx, "the workers of clusters/demo", func(ctx context.Context) (progress.State, error) {
		pool := &hyperv1.NodePool{}
		err := management.Get(ctx, client.ObjectKey{Namespace: create.DefaultNamespace, Name: demo}, pool)
		if apierrors.IsNotFound(err) {
			return progress.Done(), nil
		}
		if err != nil {
			return progress.State{}, err
		}
		nodes := &corev1.NodeList{}
		// A pool on one machine has a handful of nodes; the limit only bounds a broken server.
		if err := hosted.List(ctx, nodes, client.Limit(500)); err != nil {
			return progress.State{}, err
		}
		return workers(pool, nodes.Items), nil
	})
}

// workers says whether a pool has its nodes, and if not, what the pool waits for.
func workers(pool *hyperv1.NodePool, nodes []corev1.Node) progress.State {
	wanted := int(ptr.Deref(pool.Spec.Replicas, 0))
	if pool.Spec.AutoScaling != nil || !pool.DeletionTimestamp.IsZero() {
		return progress.Done()
	}
	ready := 0
	for i := range nodes {
		if slices.ContainsFunc(nodes[i].Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			ready++
		}
	}
	if ready >= wanted {
		return progress.Done()
	}
	text := fmt.Sprintf("%d of %d nodes are ready", ready, wanted)
	// What stops a pool comes before what is merely under way.
	for _, t := range []string{
		hyperv1.NodePoolValidReleaseImageConditionType, hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidGeneratedPayloadConditionType,
		hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolAllNodesHealthyConditionType,
	} {
		for _, c := range pool.Status.Conditions {
			if c.Type == t && c.Status == corev1.ConditionFalse && c.Message != "" {
				return progress.Waiting("%s: %s", text, strings.ReplaceAll(c.Message, "\n", "; "))
			}
		}
	}
	return progress.Waiting("%s", text)
}
