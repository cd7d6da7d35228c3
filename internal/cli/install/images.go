package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/platform"
)

// Tags of --image-refs that this installation runs itself.
const (
	operatorTag    = "hypershift-operator"
	externalDNSTag = "external-dns"
)

// withoutEffect are tags of published files whose images nothing here runs: the operator is given the published variable all the same, and the user is told what to
// do instead. Refusing them would refuse files that people have.
var withoutEffect = map[string]struct{ env, why string }{
	"apiserver-network-proxy": {"IMAGE_KONNECTIVITY", "the tunnel to nodes belongs to the release; for another image, set annotation " + hyperv1.ImageOverridesAnnotation +
		": apiserver-network-proxy=IMAGE on a HostedCluster"},
	"hypershift-shared-ingress":     {"IMAGE_SHARED_INGRESS_HAPROXY", "the shared router runs from the operator's image; for another one, use tag " + operatorTag},
	"openstack-resource-controller": {"IMAGE_OPENSTACK_RESOURCE_CONTROLLER", "no hosted cluster runs it; if machines need it, install it on the management cluster yourself"},
}

// imageEnv are the operator's variables for images of what it runs, by tag.
func imageEnv() map[string]string {
	env := map[string]string{}
	for _, p := range platform.ProgramImages() {
		env[p.Tag] = p.Env
	}
	for tag, image := range withoutEffect {
		env[tag] = image.env
	}
	return env
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
	images, env := map[string]string{}, imageEnv()
	for _, tag := range stream.Spec.Tags {
		if env[tag.Name] == "" && tag.Name != operatorTag && tag.Name != externalDNSTag {
			known := append(slices.Sorted(maps.Keys(env)), operatorTag, externalDNSTag)
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
	for tag, name := range imageEnv() {
		if images[tag] != "" {
			o.ImageEnv[name] = images[tag]
		}
	}
}
