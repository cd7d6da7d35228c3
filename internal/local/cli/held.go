//go:build linux

package cli

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/local"
	"hcp.internal/platform/internal/pause"
)

// held says why nobody is to wait for the demo cluster, and what ends that; empty: it is to come up.
func held(hc *hyperv1.HostedCluster, now time.Time) string {
	if !hc.DeletionTimestamp.IsZero() {
		return ""
	}
	// Nothing wakes a paused one, so the pause comes first.
	if p := pause.At(hc.Spec.PausedUntil, now); p.Active {
		return fmt.Sprintf("HostedCluster %s/%s is paused%s, so nothing waits for it; end that with: "+
			`kubectl patch hostedcluster -n %[1]s %[2]s --type merge -p '{"spec":{"pausedUntil":null}}'`+
			" (a recovery or restore of etcd pauses it, too, and ends that itself)", hc.Namespace, hc.Name, until(p))
	}
	if sleep := pause.Hibernation(hc.Annotations, now); sleep.Active {
		return fmt.Sprintf("HostedCluster %s/%s sleeps%s, so nothing waits for it; wake it with: hypershift wake %[2]s", hc.Namespace, hc.Name, until(sleep.Pause))
	}
	return ""
}

func until(p pause.Pause) string {
	if p.Until.IsZero() {
		return ""
	}
	return " until " + p.Until.UTC().Format(time.RFC3339)
}

// heldDemo is held of the demo cluster. One that the user has destroyed is not held.
func heldDemo(ctx context.Context, management client.Client, now time.Time) (string, error) {
	hc := &hyperv1.HostedCluster{}
	err := management.Get(ctx, client.ObjectKey{Namespace: create.DefaultNamespace, Name: demo}, hc)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return held(hc, now), nil
}

// awake leaves a tour of the demo cluster for later while that is held.
func awake(tour func(context.Context, local.Cluster, local.Say) error) func(context.Context, local.Cluster, local.Say) error {
	return func(ctx context.Context, c local.Cluster, say local.Say) error {
		management, err := (&connect.Flags{Kubeconfig: c.Kubeconfig}).Client()
		if err != nil {
			return err
		}
		why, err := heldDemo(ctx, management, c.Clock.Now())
		if err != nil {
			return err
		}
		if why != "" {
			return local.ErrNotNow // createDemo has said why
		}
		return tour(ctx, c, say)
	}
}
