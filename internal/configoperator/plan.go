package configoperator

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/resources"
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
