package kubevirt

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

func quantity(n int32) *resource.Quantity { return resource.NewQuantity(int64(n), resource.DecimalSI) }

// bootImage is what machines of a pool boot: a container disk, or a file.
type bootImage struct {
	containerDisk, url string
	// own: the user named it. It is never cached.
	own bool
}

// imageField is where a user names an image.
const imageField = "spec.platform.kubevirt.rootVolume.diskImage.containerDiskImage"

// imageOf is the first there is of the user's image, the release's container disk and, where that is allowed, the release's file for OpenStack.
func imageOf(in machine.Input) (bootImage, error) {
	root := in.NodePool.Spec.Platform.Kubevirt.RootVolume
	if d := root.Image; d != nil && d.ContainerDiskImage != nil && *d.ContainerDiskImage != "" {
		return bootImage{containerDisk: *d.ContainerDiskImage, own: true}, nil
	}
	images, err := cloud.Images(in, imageField)
	switch {
	case err != nil:
		return bootImage{}, err
	case images.KubeVirt != "":
		return bootImage{containerDisk: images.KubeVirt}, nil
	case in.NodePool.Annotations[hyperv1.AllowUnsupportedKubeVirtRHCOSVariantsAnnotation] == "true" && images.OpenStack.URL != "":
		return bootImage{url: images.OpenStack.URL}, nil
	}
	return bootImage{}, cloud.Missing(in, "container disk for KubeVirt", imageField)
}

// text is the image as people read it.
func (b bootImage) text() string {
	if b.url != "" {
		return b.url
	}
	return b.containerDisk
}

// upstream is where the image itself is.
func (b bootImage) upstream() source {
	if b.url != "" {
		return source{HTTP: &download{URL: b.url}}
	}
	return source{Registry: &registry{URL: "docker://" + b.containerDisk, PullMethod: "node"}}
}

// cached tells whether machines of a pool clone a volume with the image instead of getting it each on its own.
func (b bootImage) cached(root *hyperv1.KubevirtRootVolume) bool {
	return !b.own && root.CacheStrategy != nil && root.CacheStrategy.Type == hyperv1.KubevirtCachingStrategyPVC
}

// source is where the disk of a machine comes from.
func (b bootImage) source(in machine.Input) (source, error) {
	if !b.cached(in.NodePool.Spec.Platform.Kubevirt.RootVolume) {
		return b.upstream(), nil
	}
	s := in.NodePool.Status.Platform
	if s == nil || s.KubeVirt == nil || s.KubeVirt.CacheName == "" {
		return source{}, &machine.NotReadyError{Waiting: "the volume that caches the boot image"}
	}
	return source{PVC: &reference{Namespace: InfraNamespace(in.HostedCluster, names.NamespaceOf(in.HostedCluster)), Name: s.KubeVirt.CacheName}}, nil
}

// PoolConditions implements platform.PoolReporter.
func (Platform) PoolConditions(in machine.Input) (set []hyperv1.NodePoolCondition, absent []string) {
	if check(in.NodePool.Spec.Platform.Kubevirt) != nil {
		return nil, []string{hyperv1.NodePoolValidPlatformImageType} // the template says what is wrong
	}
	image, err := imageOf(in)
	return []hyperv1.NodePoolCondition{cloud.ImageCondition(fmt.Sprintf("Bootstrap KubeVirt image is %q", image.text()), err)}, nil
}
