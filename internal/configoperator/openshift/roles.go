package openshift

import (
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// roles are what programs of the control plane, nodes and users may do in the hosted cluster beyond what its API server and its payload grant.
func roles(in Input) ([]Action, error) {
	var actions []Action
	for _, file := range []struct {
		name string
		when bool
	}{
		{"roles.yaml", true},
		{"roles-ingress.yaml", in.has(hyperv1.IngressCapability)},
		{"roles-aro.yaml", in.aro()},
	} {
		if file.when {
			actions = append(actions, apply(load(file.name)...)...)
		}
	}
	return slices.Clip(actions), nil
}
