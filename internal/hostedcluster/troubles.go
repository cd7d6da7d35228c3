package hostedcluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/read"
)

// deployed are the components that this operator deploys itself. The troubles of others are told by the control-plane-operator.
var deployed = []string{names.ControlPlaneOperator, clusterapi.Name, capiprovider.Name}

const (
	// troubleAfter is how long pods may take to run before anybody asks why not.
	troubleAfter = 20 * time.Second
	// troubleRecheck is how often it is asked: pods are not watched for it.
	troubleRecheck = 15 * time.Second
)

// observeTroubles looks why pods of deployed do not run, when some don't.
func (r *Reconciler) observeTroubles(ctx context.Context, obs *state.Observed) error {
	if obs.HCP == nil || r.Clock.Since(obs.HCP.CreationTimestamp.Time) < troubleAfter {
		return nil
	}
	var lacking []appsv1.Deployment
	for _, name := range deployed {
		d, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: obs.HCP.Namespace, Name: name}, &appsv1.Deployment{})
		if err != nil {
			return err
		}
		if d != nil && d.Status.AvailableReplicas < ptr.Deref(d.Spec.Replicas, 1) {
			lacking = append(lacking, *d)
			if name == names.ControlPlaneOperator {
				obs.OperatorSince = lastProgress(d, r.Clock.Now())
			}
		}
	}
	if obs.Lacking = len(lacking) > 0; !obs.Lacking {
		return nil
	}
	var err error
	if obs.Troubles, err = trouble.Look(ctx, r.Live, obs.HCP.Namespace, lacking, nil, r.Clock.Now(), deployed...); err != nil {
		return fmt.Errorf("looking why pods of %s do not run: %w", names.BackReference(obs.HC), err)
	}
	return nil
}

// progressDeadlineExceeded is why a Deployment does not progress any more, and defaultProgressDeadline after how many seconds without progress that is told, unless
// its spec says otherwise.
const (
	progressDeadlineExceeded = "ProgressDeadlineExceeded"
	defaultProgressDeadline  = 600
)

// lastProgress is when a Deployment was changed, or got on, last; zero: it does not say. Troubles of before are not those of what it runs now.
func lastProgress(d *appsv1.Deployment, now time.Time) time.Time {
	if d.Status.ObservedGeneration < d.Generation {
		return now
	}
	for _, c := range d.Status.Conditions {
		if c.Type != appsv1.DeploymentProgressing {
			continue
		}
		if c.Reason == progressDeadlineExceeded { // written that long after the last progress
			return c.LastUpdateTime.Add(-time.Duration(ptr.Deref(d.Spec.ProgressDeadlineSeconds, defaultProgressDeadline)) * time.Second)
		}
		return c.LastUpdateTime.Time
	}
	return time.Time{}
}
