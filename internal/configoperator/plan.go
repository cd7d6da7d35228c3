package configoperator

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/pause"
)

// resync is how long after a good pass the next one comes without a reason: a safety net for lost watches.
const resync = 10 * time.Minute

// Observed is everything that the decision may look at.
type Observed struct {
	HCP *hyperv1.HostedControlPlane
	// Images of what runs on nodes, by tag of the release.
	Images map[string]string
	// Tunnel from the control plane to the nodes.
	Tunnel resources.Tunnel
	// Nodes of the hosted cluster, counted up to manyNodes.
	Nodes int
}

// Plan says what to do.
type Plan struct {
	Objects      []client.Object
	Missing      error // what couldn't be rendered
	RecheckAfter time.Duration
}

// planFor asks for every object. Call it only when nothing holds.
func planFor(obs Observed) Plan {
	objects, err := resources.Render(resources.Input{HCP: obs.HCP, Images: obs.Images, Tunnel: obs.Tunnel, Nodes: obs.Nodes})
	return Plan{Objects: objects, Missing: err, RecheckAfter: resync}
}

// hold says why nothing is to be done, neither in the hosted cluster nor as a condition, if so, and when that ends; 0 is when something changes.
//
// operatesOn is the release image that the process was started for; empty: any. It is compared with the hosted cluster's release and not with that of
// the control plane: what this operator makes belongs to the hosted cluster.
func hold(hcp *hyperv1.HostedControlPlane, operatesOn string, now time.Time) (reason string, after time.Duration) {
	if !hcp.DeletionTimestamp.IsZero() {
		return "the hosted control plane is being deleted", 0
	}
	if p := pause.At(hcp.Spec.PausedUntil, now); p.Active { // what is no time is reported by another controller
		return "paused by spec.pausedUntil", p.Left(now)
	}
	if want := hcp.Spec.ReleaseImage; operatesOn != "" && operatesOn != want {
		return fmt.Sprintf("this process belongs to release %s, the hosted cluster to %s", operatesOn, want), 0
	}
	return "", 0
}

// holder is hold for a process of a release, as the controllers take it.
func holder(operatesOn string) func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration) {
	return func(hcp *hyperv1.HostedControlPlane, now time.Time) (string, time.Duration) {
		return hold(hcp, operatesOn, now)
	}
}
