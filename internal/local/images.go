package local

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/local/components"
)

// repository names in the local registry.
const (
	repoPlatform   = components.RegistryHost + "/hypershift/hypershift"
	repoKubernetes = components.RegistryHost + "/hypershift/kubernetes"
	repoCoreDNS    = components.RegistryHost + "/hypershift/coredns"
	repoRelease    = components.RegistryHost + "/hypershift/release"
)

// caBundle is where Debian keeps the public certificate authorities.
const caBundle = "/etc/ssl/certs/ca-certificates.crt"

// Images are references by digest of what has been pushed.
type Images struct {
	Platform, CoreDNS, Pause string
	Releases                 map[string]string // version to reference by tag
}

func binaries(root string) image.Binaries {
	bin := func(name string) string { return filepath.Join(root, "bin", name) }
	ca, _ := os.ReadFile(caBundle) // a machine without one has no use for it
	return image.Binaries{
		Hypershift: bin("hypershift"), Operators: bin("hcp-operators"), Sidecar: bin("hcp-sidecar"),
		Pause: bin("pause"), CoreDNS: bin("coredns"), CABundle: ca,
	}
}

// pushBase pushes what the cluster itself needs: the sandbox image and the DNS server's.
func pushBase(ctx context.Context, b image.Binaries, images *Images) error {
	for _, i := range []struct {
		ref   string
		build func(image.Binaries) (v1.Image, error)
		out   *string
	}{
		{components.PauseImage, image.Pause, &images.Pause},
		{repoCoreDNS + ":local", image.CoreDNS, &images.CoreDNS},
	} {
		img, err := i.build(b)
		if err != nil {
			return fmt.Errorf("building %s: %w", i.ref, err)
		}
		if *i.out, err = image.Push(ctx, i.ref, img); err != nil {
			return err
		}
	}
	return nil
}

// pushPlatform pushes our own image.
func pushPlatform(ctx context.Context, b image.Binaries, images *Images) error {
	img, err := image.Platform(b)
	if err != nil {
		return fmt.Errorf("building our image: %w", err)
	}
	images.Platform, err = image.Push(ctx, repoPlatform+":local", img)
	return err
}

// pushRelease pushes the Kubernetes images of a version and the release image that names them.
//
// A release keeps the platform image that it was built with: what runs beside the components of a hosted cluster must not
// change because the operator does. So an existing release is left alone unless its Kubernetes changed or refresh is set.
func (s Settings) pushRelease(ctx context.Context, version string, b image.Binaries, images *Images) error {
	img, err := image.Kubernetes(filepath.Join(s.Root, builds.KubernetesBinary(version)), b.CABundle)
	if err != nil {
		return fmt.Errorf("building the image of Kubernetes %s: %w", version, err)
	}
	bundle, err := image.Push(ctx, repoKubernetes+":"+version, img)
	if err != nil {
		return err
	}
	ref := repoRelease + ":" + version
	images.Releases[version] = ref
	tags := releaseTags(bundle, *images)
	published, err := image.PublishedRelease(ctx, ref)
	if err != nil {
		return err
	}
	if published != nil && !s.RefreshReleases {
		tags["controlplane-operator"] = published["controlplane-operator"]
		if maps.Equal(tags, published) {
			return nil
		}
		tags = releaseTags(bundle, *images)
	}
	release, err := image.Release(version, tags)
	if err != nil {
		return err
	}
	_, err = image.Push(ctx, ref, release)
	return err
}

func releaseTags(bundle string, images Images) map[string]string {
	tags := map[string]string{"coredns": images.CoreDNS, "pause": images.Pause, "controlplane-operator": images.Platform}
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"} {
		tags[component] = bundle
	}
	return tags
}
