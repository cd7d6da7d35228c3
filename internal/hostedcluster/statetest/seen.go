package statetest

import (
	"strings"
	"time"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// Releases of Kubernetes: two patches of one minor version, and one of the next.
const (
	Image135  = "reg.example.com/release:1.35.4"
	Image1353 = "reg.example.com/release:1.35.3"
	Image136  = "reg.example.com/release:1.36.3"
)

// ReleaseOf is the release of Kubernetes that the tag of the image names.
func ReleaseOf(image string) *release.Release {
	version := image[strings.LastIndex(image, ":")+1:]
	return &release.Release{Image: image, Digest: "sha256:" + strings.Repeat("0", 64), Version: version, Kubernetes: true, KubernetesVersion: version, Arch: "AMD64",
		Images: map[string]string{"kube-apiserver": "reg.example.com/bundle@sha256:0"}}
}

// Seen is the world of a healthy, new HostedCluster.
func Seen(mutate ...func(*state.Observed)) *state.Observed {
	obs := &state.Observed{
		HC:             hostedclustertest.Example("clusters", Image135),
		Sources:        sources.Set{{Kind: sources.Secret, Name: "pull"}: {Data: map[string][]byte{names.DockerConfigKey: []byte(`{"auths":{}}`)}}},
		Target:         ReleaseOf(Image135),
		UserRelease:    ReleaseOf(Image135),
		OperatorImage:  "reg.example.com/operator:1",
		OperatorLabels: map[string]string{},
		UID:            1001,
	}
	obs.Platform, _ = platform.For(hyperv1.NonePlatform)
	obs.HC.UID, obs.HC.Generation = "uid", 3
	obs.HC.Spec.InfraID = "demo-abcde"
	for _, m := range mutate {
		m(obs)
	}
	return obs
}

// Noon is when decisions are taken.
var Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
