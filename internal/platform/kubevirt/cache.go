package kubevirt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/platform/machine"
)

// With rootVolume.cacheStrategy PVC the boot image of a pool is imported once, where the virtual machines are, and each machine clones that volume.

// Labels and annotations of such a volume, as published.
const (
	cachePrefix    = "kv-boot-image-cache-"
	cacheRoleLabel = "hypershift.openshift.io/kubevirt-boot-image-role"
	cacheRole      = "kv-boot-image-cache"
	cachePoolLabel = "hypershift.openshift.io/nodepool-uid"
	cacheHash      = "hypershift.openshift.io/kubevirt-boot-image-hash"
	bindAtOnce     = "cdi.kubevirt.io/storage.bind.immediate.requested"
	deleteAfter    = "cdi.kubevirt.io/storage.deleteAfterCompletion"
)

// cacheHashLength is how much of the hash a name holds.
const cacheHashLength = 10

// kept is a volume with a boot image.
type kept struct{ name, hash string }

// KeptImage implements platform.ImageKeeper. Nobody is asked about a pool that keeps none and never did.
func (Platform) KeptImage(ctx context.Context, live client.Reader, in machine.Input) (*machine.KeptImage, error) {
	p := in.NodePool.Spec.Platform.Kubevirt
	if check(p) != nil {
		return nil, nil // the template says what is wrong
	}
	before := in.NodePool.Status.Platform
	image, err := imageOf(in)
	wanted := err == nil && image.cached(p.RootVolume)
	if !wanted && (before == nil || before.KubeVirt == nil) {
		return nil, nil
	}
	of, err := volumesOf(ctx, nil, live, in.NodePool, credentialsOf(in.HostedCluster))
	if err != nil {
		return nil, fmt.Errorf("spec.platform.kubevirt.rootVolume.cacheStrategy: %w", err)
	}
	defer of.close()
	list, err := of.list(ctx, in.NodePool.UID)
	if err != nil {
		return nil, fmt.Errorf("spec.platform.kubevirt.rootVolume.cacheStrategy: %w", err)
	}
	hash := ""
	if wanted {
		hash = hashOf(image)
	}
	return decideCache(list, hash, in.NodePool.UID, credentialsOf(in.HostedCluster), before), nil
}

// hashOf tells images apart.
func hashOf(image bootImage) string {
	sum := sha256.Sum256([]byte(image.text()))
	return hex.EncodeToString(sum[:])
}

// decideCache is pure. An empty hash: no image is to be kept. A volume with the image is taken whatever its name is, and of several that whose name is
// first. Its name follows from pool and image, so that a pass that ended half-way makes no second one.
func decideCache(list []kept, hash string, pool types.UID, credentials *hyperv1.KubevirtPlatformCredentials, before *hyperv1.NodePoolPlatformStatus) *machine.KeptImage {
	slices.SortFunc(list, func(a, b kept) int { return cmp.Compare(a.name, b.name) })
	result := &machine.KeptImage{}
	name := ""
	for _, k := range list {
		if hash != "" && k.hash == hash && name == "" {
			name, result.There = k.name, true
			continue
		}
		result.Old = append(result.Old, k.name)
	}
	switch {
	case hash == "" && len(list) == 0:
		result.There = true
		return result
	case hash == "":
		result.There, result.Status = true, before.DeepCopy() // until the last volume is gone it tells where that is
		return result
	case name == "":
		sum := sha256.Sum256([]byte(string(pool) + "/" + hash))
		name = cachePrefix + hex.EncodeToString(sum[:])[:cacheHashLength]
	}
	result.Status = &hyperv1.NodePoolPlatformStatus{KubeVirt: &hyperv1.KubeVirtNodePoolStatus{CacheName: name, Credentials: credentials.DeepCopy()}}
	return result
}

// KeepImage implements platform.ImageKeeper.
func (Platform) KeepImage(ctx context.Context, c client.Client, live client.Reader, in machine.Input) error {
	p := in.NodePool.Spec.Platform.Kubevirt
	image, err := imageOf(in)
	if err != nil {
		return err
	}
	of, err := volumesOf(ctx, c, live, in.NodePool, credentialsOf(in.HostedCluster))
	if err != nil {
		return err
	}
	defer of.close()
	s := in.NodePool.Status.Platform
	if s == nil || s.KubeVirt == nil || s.KubeVirt.CacheName == "" {
		return errors.New("the volume for the boot image has no name")
	}
	return of.create(ctx, cacheVolume(s.KubeVirt.CacheName, in.NodePool.UID, image, p.RootVolume))
}

// cacheVolume is a DataVolume that is imported at once and stays.
func cacheVolume(name string, pool types.UID, image bootImage, root *hyperv1.KubevirtRootVolume) dataVolumeTemplate {
	dv := rootVolume(root, image.upstream())
	dv.Metadata = meta{
		Name:        name,
		Labels:      map[string]string{cacheRoleLabel: cacheRole, cachePoolLabel: string(pool), hyperv1.IsKubeVirtRHCOSVolumeLabel: "true"},
		Annotations: map[string]string{cacheHash: hashOf(image), bindAtOnce: "true", deleteAfter: "false"},
	}
	dv.Spec.Preallocation = ptr.To(true)
	return dv
}

// DropImages implements platform.ImageKeeper. Where the other cluster is, the NodePool's own status says, since the HostedCluster may be gone.
func (Platform) DropImages(ctx context.Context, c client.Client, live client.Reader, pool *hyperv1.NodePool, old []string) error {
	s := pool.Status.Platform
	if s == nil || s.KubeVirt == nil {
		return nil
	}
	of, err := volumesOf(ctx, c, live, pool, s.KubeVirt.Credentials)
	if errors.Is(err, errNoKubeconfig) {
		return nil // nobody can reach that cluster any more
	}
	if err != nil {
		return err
	}
	defer of.close()
	if old == nil {
		list, err := of.list(ctx, pool.UID)
		if err != nil {
			return err
		}
		for _, k := range list {
			old = append(old, k.name)
		}
	}
	var errs []error
	for _, name := range old {
		errs = append(errs, of.remove(ctx, name))
	}
	return errors.Join(errs...)
}

// volumesOf are the volumes where the virtual machines of a pool are.
func volumesOf(ctx context.Context, c client.Client, live client.Reader, pool *hyperv1.NodePool, credentials *hyperv1.KubevirtPlatformCredentials) (volumes, error) {
	hcpNamespace := names.ControlPlaneNamespace(pool.Namespace, pool.Spec.ClusterName)
	if credentials == nil {
		return managementVolumes{c, live, hcpNamespace}, nil
	}
	api, err := otherCluster(ctx, live, credentials, pool.Namespace, hcpNamespace)
	if err != nil {
		return nil, err
	}
	return otherVolumes{api, credentials.InfraNamespace}, nil
}

// isMissing tells that there is no such object, or no such kind.
func isMissing(err error) bool { return apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) }
