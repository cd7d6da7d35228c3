package openshift

import (
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

const (
	catalogV1   = "operators.coreos.com/v1alpha1"
	marketplace = "openshift-marketplace"
	hubKey      = "OperatorHub /cluster"
)

// catalogs are where operators to install come from. With the placement management they are the control plane's, and the HostedCluster decides about them; with
// guest they are the hosted cluster's own from the first moment on.
func catalogs(in Input) ([]Action, error) {
	managed := in.HCP.Spec.OLMCatalogPlacement != hyperv1.GuestOLMCatalogPlacement
	wanted := in.configuration().OperatorHub
	disabled := wanted != nil && wanted.DisableAllDefaultSources
	var actions []Action
	if managed {
		actions = append(actions, edit(configV1, "OperatorHub", "", cluster, func(live map[string]any) {
			live["spec"] = map[string]any{}
			if disabled {
				live["spec"] = map[string]any{"disableAllDefaultSources": true}
			}
		}))
	} else {
		spec := map[string]any{}
		if wanted != nil {
			spec = encoded(wanted)
		}
		actions = append(actions, Action{Do: Create, Object: object(configV1, "OperatorHub", "", cluster, map[string]any{"spec": spec})})
		if live := in.Hosted.Objects[hubKey]; live != nil {
			disabled, _ = peek(live, "spec")["disableAllDefaultSources"].(bool)
		}
	}
	for _, c := range []struct {
		name, display, image string
		priority             int64
	}{
		{"certified-operators", "Certified Operators", hyperv1.CertifiedOperatorsCatalogImageAnnotation, -200},
		{"community-operators", "Community Operators", hyperv1.CommunityOperatorsCatalogImageAnnotation, -400},
		{"redhat-operators", "Red Hat Operators", hyperv1.RedHatOperatorsCatalogImageAnnotation, -100},
	} {
		if disabled {
			actions = append(actions, remove(catalogV1, "CatalogSource", marketplace, c.name))
			continue
		}
		spec := map[string]any{
			"sourceType": "grpc", "publisher": "Red Hat", "displayName": c.display, "priority": c.priority,
			"updateStrategy": map[string]any{"registryPoll": map[string]any{"interval": "10m"}},
			"grpcPodConfig":  map[string]any{"securityContextConfig": "restricted"},
		}
		if managed {
			spec["address"] = c.name + ":50051"
		} else {
			image, err := indexImage(in, c.image, c.name)
			if err != nil {
				return actions, err
			}
			spec["image"] = image
		}
		source := object(catalogV1, "CatalogSource", marketplace, c.name, map[string]any{"spec": spec})
		actions = append(actions, apply(annotate(source, "target.workload.openshift.io/management", `{"effect": "PreferredDuringScheduling"}`))...)
	}
	return append(actions, remove(catalogV1, "CatalogSource", marketplace, "redhat-marketplace")), nil
}

// indexImage is the catalog's image: the user's, or Red Hat's for the minor version of the release, from where the user has it.
func indexImage(in Input, annotation, name string) (string, error) {
	if image := strings.TrimSpace(in.HCP.Annotations[annotation]); image != "" {
		return image, nil
	}
	const overrides = hyperv1.OLMCatalogsISRegistryOverridesAnnotation
	images, err := payload.CatalogImages(name, in.Release.Version, in.HCP.Annotations[overrides], overrides)
	if err != nil {
		return "", err
	}
	return images[0], nil
}
