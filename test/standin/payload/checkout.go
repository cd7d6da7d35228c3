package payload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/local/debian"
)

// toolPackages are the Debian packages that the scripts of a payload's containers call.
var toolPackages = []string{"bash", "coreutils", "curl", "findutils", "grep", "haproxy", "sed"}

// FromCheckout are the settings of a payload for the local cluster of a checkout: of what is in its bin, and with our own images out of a
// Kubernetes release that has been pushed, such as 10.244.0.1:5000/hypershift/release:1.36.3. bin/standin must have been built.
func FromCheckout(ctx context.Context, root, repository, version, kubernetes, kubernetesRelease string) (Settings, error) {
	cache := &debian.Cache{Dir: filepath.Join(root, ".cache/debian"), Say: func(string, ...any) {}}
	packages, err := cache.Get(ctx, "standin", toolPackages)
	if err != nil {
		return Settings{}, err
	}
	tools, err := debian.Files(packages, image.Skip)
	if err != nil {
		return Settings{}, err
	}
	published, err := image.PublishedRelease(ctx, kubernetesRelease)
	if err != nil {
		return Settings{}, err
	}
	own := map[string]string{"hypershift": published["controlplane-operator"]}
	for _, tag := range []string{"apiserver-network-proxy", "cluster-capi-controllers", "machine-config-operator"} {
		own[tag] = published[tag]
	}
	for tag, ref := range own {
		if ref == "" {
			return Settings{}, fmt.Errorf("release %s has no image for tag %s; bring the local cluster up first", kubernetesRelease, tag)
		}
	}
	ca, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		return Settings{}, fmt.Errorf("reading public certificate authorities: %w; install ca-certificates", err)
	}
	bin := func(name string) string { return filepath.Join(root, "bin", name) }
	return Settings{
		Repository: repository, Version: version, Kubernetes: kubernetes, Standin: bin("standin"), Kubectl: bin("kubectl"),
		Kube: filepath.Join(root, builds.KubernetesBinary(kubernetes)), Tools: tools, CABundle: ca, Own: own,
	}, nil
}
