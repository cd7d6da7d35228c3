package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/debian"
)

// repository names in the local registry.
const (
	repoPlatform   = components.RegistryHost + "/hypershift/hypershift"
	repoSidecar    = components.RegistryHost + "/hypershift/sidecar"
	repoKubernetes = components.RegistryHost + "/hypershift/kubernetes"
	repoCoreDNS    = components.RegistryHost + "/hypershift/coredns"
	repoRelease    = components.RegistryHost + "/hypershift/release"
	repoKubeNode   = components.RegistryHost + "/hypershift/kubernetes-node"
	repoClusterAPI = components.RegistryHost + "/hypershift/cluster-api"
	repoFlannel    = components.RegistryHost + "/hypershift/flannel"
	repoStorage    = components.RegistryHost + "/hypershift/local-storage"
	repoNode       = components.RegistryHost + "/hypershift/node"
	repoKarpenter  = components.RegistryHost + "/hypershift/karpenter"
	repoWebapp     = components.RegistryHost + "/hypershift/webapp"
)

// packageCache is where downloaded Debian packages are kept, relative to the checkout. "down" leaves it alone, as it does builds.
const packageCache = ".cache/debian"

// caBundle is where Debian keeps the public certificate authorities.
const caBundle = "/etc/ssl/certs/ca-certificates.crt"

// Images are references by digest of what has been pushed.
type Images struct {
	Platform, Sidecar     string
	CoreDNS, Pause        string
	ClusterAPI, Node      string
	Flannel, LocalStorage string
	Karpenter             string            // empty: it was not built
	Releases              map[string]string // version to reference by tag

	networkTools []image.File // what kube-proxy's image holds beside it
	nodeTools    []image.File // what the image of workers is made of
}

func binaries(root string) image.Binaries {
	bin := func(name string) string { return filepath.Join(root, "bin", name) }
	ca, _ := os.ReadFile(caBundle) // a machine without one has no use for it
	return image.Binaries{
		Hypershift: bin("hypershift"), Operators: bin("hcp-operators"), Cloud: bin("hcp-cloud"), Sidecar: bin("hcp-sidecar"),
		Pause: bin("pause"), CoreDNS: bin("coredns"), Flannel: bin("flannel"), LocalStorage: bin("local-storage"), Webapp: bin("webapp"), CABundle: ca,
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

// exampleVersions are the versions of the application that examples install and upgrade.
var exampleVersions = []string{"1.0.0", "2.0.0"}

// pushExamples pushes what the tour and the examples run in hosted clusters.
func pushExamples(ctx context.Context, b image.Binaries) error {
	for _, version := range exampleVersions {
		img, err := image.Webapp(b, version)
		if err != nil {
			return fmt.Errorf("building the example application: %w", err)
		}
		if _, err := image.Push(ctx, repoWebapp+":"+version, img); err != nil {
			return err
		}
	}
	return nil
}

// pushPlatform pushes our own image, and the part of it that runs on workers.
func pushPlatform(ctx context.Context, b image.Binaries, images *Images) error {
	img, err := image.Platform(b)
	if err != nil {
		return fmt.Errorf("building our image: %w", err)
	}
	if images.Platform, err = image.Push(ctx, repoPlatform+":local", img); err != nil {
		return err
	}
	if img, err = image.Sidecar(b); err != nil {
		return fmt.Errorf("building the image of what runs on workers: %w", err)
	}
	images.Sidecar, err = image.Push(ctx, repoSidecar+":local", img)
	return err
}

// pushMachines pushes what workers need: their own image and Cluster API's manager. Their Debian packages are downloaded once and
// kept in the checkout's cache.
func (s Settings) pushMachines(ctx context.Context, b image.Binaries, images *Images, say func(string, ...any)) error {
	cache := &debian.Cache{Dir: filepath.Join(s.Root, packageCache), Say: say}
	files := func(set string, packages []string) ([]image.File, error) {
		unpacked, err := cache.Get(ctx, set, packages)
		if err != nil {
			return nil, err
		}
		return debian.Files(unpacked, image.Skip)
	}
	node, err := files("node", image.NodePackages)
	if err != nil {
		return fmt.Errorf("assembling the image of workers: %w", err)
	}
	if images.networkTools, err = files("network", image.NetworkPackages); err != nil {
		return fmt.Errorf("assembling the image of kube-proxy: %w", err)
	}
	images.nodeTools = node
	img, err := image.ClusterAPI(filepath.Join(s.Root, builds.ClusterAPIManager), b.CABundle)
	if err != nil {
		return fmt.Errorf("building the image of Cluster API's manager: %w", err)
	}
	if images.ClusterAPI, err = image.Push(ctx, repoClusterAPI+":"+builds.ClusterAPIVersion, img); err != nil {
		return err
	}
	if img, err = image.Flannel(b, images.networkTools); err != nil {
		return fmt.Errorf("building the image of the pod network: %w", err)
	}
	if images.Flannel, err = image.Push(ctx, repoFlannel+":local", img); err != nil {
		return err
	}
	if img, err = image.LocalStorage(b); err != nil {
		return fmt.Errorf("building the image of the default storage class: %w", err)
	}
	if images.LocalStorage, err = image.Push(ctx, repoStorage+":local", img); err != nil {
		return err
	}
	return s.pushKarpenter(ctx, b, images)
}

// pushKarpenter pushes hcp-karpenter if it was built, as few need it.
func (s Settings) pushKarpenter(ctx context.Context, b image.Binaries, images *Images) error {
	binary := filepath.Join(s.Root, builds.KarpenterBinary)
	if _, err := os.Stat(binary); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	img, err := image.Karpenter(binary, b.CABundle)
	if err != nil {
		return fmt.Errorf("building the image of Karpenter: %w", err)
	}
	images.Karpenter, err = image.Push(ctx, repoKarpenter+":local", img)
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
	img, err = image.KubernetesNode(filepath.Join(s.Root, builds.KubernetesNodeBinary(version)), images.networkTools, b.CABundle)
	if err != nil {
		return fmt.Errorf("building the image of kubelet and kube-proxy %s: %w", version, err)
	}
	node, err := image.Push(ctx, repoKubeNode+":"+version, img)
	if err != nil {
		return err
	}
	machine, err := image.Node(images.nodeTools, b.Sidecar, components.RegistryHost, b.CABundle,
		image.Kubelet{Binary: filepath.Join(s.Root, builds.KubernetesNodeBinary(version)), Image: node})
	if err != nil {
		return fmt.Errorf("building the image of workers of %s: %w", version, err)
	}
	worker, err := image.Push(ctx, repoNode+":"+version, machine)
	if err != nil {
		return err
	}
	ref := repoRelease + ":" + version
	images.Releases[version] = ref
	tags := releaseTags(bundle, node, worker, *images)
	published, err := image.PublishedRelease(ctx, ref)
	if err != nil {
		return err
	}
	if published != nil && !s.RefreshReleases {
		for _, ours := range append([]string{"controlplane-operator", image.LocalNodeTag}, image.StandInTags...) {
			if published[ours] != "" {
				tags[ours] = published[ours]
			} else {
				delete(tags, ours) // one that this version added is no reason to change the others
			}
		}
		if ref := published[image.KarpenterTag]; ref != "" && images.Karpenter == "" {
			tags[image.KarpenterTag] = ref // control planes may run it, although it isn't built any more
		}
		if maps.Equal(tags, published) {
			return nil
		}
		tags = releaseTags(bundle, node, worker, *images)
	}
	release, err := image.Release(version, tags)
	if err != nil {
		return err
	}
	_, err = image.Push(ctx, ref, release)
	return err
}

func releaseTags(bundle, node, worker string, images Images) map[string]string {
	return image.ReleaseImages{
		Kubernetes: bundle, KubernetesNode: node, Platform: images.Platform, Sidecar: images.Sidecar, CoreDNS: images.CoreDNS, Pause: images.Pause,
		ClusterAPI: images.ClusterAPI, Flannel: images.Flannel, LocalStorage: images.LocalStorage, LocalNode: worker,
		Karpenter: images.Karpenter,
	}.Tags()
}
