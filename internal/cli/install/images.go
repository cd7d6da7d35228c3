package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/connect"
)

// Tags of --image-refs that this installation runs itself.
const (
	operatorTag    = "hypershift-operator"
	externalDNSTag = "external-dns"
)

// imageEnv are the operator's variables for images of what it runs, by tag.
var imageEnv = map[string]string{
	"cluster-api":                    "IMAGE_CLUSTER_API",
	"cluster-api-provider-agent":     "IMAGE_AGENT_CAPI_PROVIDER",
	"cluster-api-provider-aws":       "IMAGE_AWS_CAPI_PROVIDER",
	"cluster-api-provider-azure":     "IMAGE_AZURE_CAPI_PROVIDER",
	"cluster-api-provider-kubevirt":  "IMAGE_KUBEVIRT_CAPI_PROVIDER",
	"cluster-api-provider-powervs":   "IMAGE_POWERVS_CAPI_PROVIDER",
	"cluster-api-provider-gcp":       "IMAGE_GCP_CAPI_PROVIDER",
	"cluster-api-provider-openstack": "IMAGE_OPENSTACK_CAPI_PROVIDER",
	"openstack-resource-controller":  "IMAGE_OPENSTACK_RESOURCE_CONTROLLER",
	"apiserver-network-proxy":        "IMAGE_KONNECTIVITY",
	"hypershift-shared-ingress":      "IMAGE_SHARED_INGRESS_HAPROXY",
}

// readImageRefs reads the tags of an ImageStream file. Tags that mean nothing here are refused: a misspelt one would leave the
// default image in place.
func readImageRefs(path string) (map[string]string, error) {
	raw, err := connect.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--image-refs: %w", err)
	}
	var stream struct {
		Kind string `json:"kind"`
		Spec struct {
			Tags []struct {
				Name string `json:"name"`
				From struct {
					Name string `json:"name"`
				} `json:"from"`
			} `json:"tags"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &stream); err != nil {
		return nil, fmt.Errorf("--image-refs %s: %w", path, err)
	}
	if stream.Kind != "ImageStream" {
		return nil, fmt.Errorf("--image-refs %s: kind is %q, must be ImageStream", path, stream.Kind)
	}
	images := map[string]string{}
	for _, tag := range stream.Spec.Tags {
		if imageEnv[tag.Name] == "" && tag.Name != operatorTag && tag.Name != externalDNSTag {
			known := append(slices.Sorted(maps.Keys(imageEnv)), operatorTag, externalDNSTag)
			return nil, fmt.Errorf("--image-refs %s: unknown tag %q; there are %s", path, tag.Name, strings.Join(known, ", "))
		}
		if tag.From.Name == "" || strings.ContainsAny(tag.From.Name, " \t\r\n") {
			return nil, fmt.Errorf("--image-refs %s: tag %s: from.name must be an image reference", path, tag.Name)
		}
		images[tag.Name] = tag.From.Name
	}
	return images, nil
}

// useImageRefs takes the images of the tags.
func (o *Options) useImageRefs(images map[string]string) {
	if image := images[operatorTag]; image != "" && o.Image == "" {
		o.Image = image
	}
	if image := images[externalDNSTag]; image != "" {
		o.ExternalDNS.Image = image
	}
	o.ImageEnv = map[string]string{}
	for tag, name := range imageEnv {
		if images[tag] != "" {
			o.ImageEnv[name] = images[tag]
		}
	}
}
