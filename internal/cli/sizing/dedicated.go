package sizing

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/fleet"
	"hcp.internal/platform/internal/placement"
)

// dedicated counts pairs of nodes for control planes whose requests are served on nodes of their own; nil for others.
type dedicated struct {
	world  placement.World
	places int
}

func dedicatedFor(ctx context.Context, c client.Reader, model *hyperv1.HostedCluster) (*dedicated, error) {
	if model.Annotations[hyperv1.TopologyAnnotation] != hyperv1.DedicatedRequestServingComponentsTopology {
		return nil, nil
	}
	world, _, err := fleet.World(ctx, c, c, model.Namespace)
	if err != nil {
		return nil, err
	}
	return &dedicated{world: world, places: placement.PlacesFor(model.Spec.ControllerAvailabilityPolicy)}, nil
}

// serves says whether pods are on such nodes.
func serves(g capacity.Group) bool {
	return g.Pod.Object.Labels[hyperv1.RequestServingComponentLabel] == "true"
}

// others are the pods that have no nodes of their own.
func (d *dedicated) others(like capacity.Candidate) capacity.Candidate {
	if d == nil {
		return like
	}
	like.Groups = slices.DeleteFunc(slices.Clone(like.Groups), serves)
	if like.Spare != nil && serves(*like.Spare) {
		like.Spare = nil
	}
	return like
}

// bound has no more fit than there are free pairs.
func (d *dedicated) bound(fit Fit) Fit {
	if d == nil {
		return fit
	}
	fit.Needs += fmt.Sprintf(", and nodes for requests: %d", d.places)
	if pairs := placement.Free(d.world, fit.Size, d.places); len(pairs) <= fit.Count {
		fit.Count, fit.More = len(pairs), false
		fit.Lack = fmt.Sprintf("no more pair of nodes for requests is free for size %s: add nodes with labels %s=true, %s=%s and %s=NAME",
			fit.Size, hyperv1.RequestServingComponentLabel, hyperv1.ClusterSizeLabel, fit.Size, hyperv1.PairedNodesLabel)
	}
	return fit
}
