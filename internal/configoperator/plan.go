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
	// OperatesOn is the release image that this process was started for; empty: any. It is compared with the hosted cluster's
	// release and not with that of the control plane: what this operator makes belongs to the hosted cluster.
	OperatesOn string
	// Images of what runs on nodes, by tag of the release.
	Images map[string]string
	// Tunnel from the control plane to the nodes.
	Tunnel resources.Tunnel
	// Nodes of the hosted cluster, counted up to manyNodes.
	Nodes int
}

// Plan says what to do. With Hold set nothing is written, neither in the hosted cluster nor as a condition.
type Plan struct {
	Hold         string // why nothing is done
	Objects      []client.Object
	Missing      error // what couldn't be rendered
	RecheckAfter time.Duration
}

// planFor holds while the control plane is paused, being deleted, or at the release of another process, and else asks for
// every object.
func planFor(obs Observed, now time.Time) Plan {
	if reason, after := hold(obs, now); reason != "" {
		return Plan{Hold: reason, RecheckAfter: after}
	}
	objects, err := resources.Render(resources.Input{HCP: obs.HCP, Images: obs.Images, Tunnel: obs.Tunnel, Nodes: obs.Nodes})
	return Plan{Objects: objects, Missing: err, RecheckAfter: resync}
}

// hold says why nothing is to be done, if so, and when that ends; 0 is when something changes.
func hold(obs Observed, now time.Time) (reason string, after time.Duration) {
	if !obs.HCP.DeletionTimestamp.IsZero() {
		return "the hosted control plane is being deleted", 0
	}
	if p := pause.At(obs.HCP.Spec.PausedUntil, now); p.Active { // what is no time is reported by another controller
		return "paused by spec.pausedUntil", p.Left(now)
	}
	if want := obs.HCP.Spec.ReleaseImage; obs.OperatesOn != "" && obs.OperatesOn != want {
		return fmt.Sprintf("this process belongs to release %s, the hosted cluster to %s", obs.OperatesOn, want), 0
	}
	return "", 0
}
