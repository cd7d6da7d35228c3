package virtualmachines

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	platformmachine "hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/bootimages"
	"hcp.internal/platform/test/objects"
)

// booting is a release of OpenShift with a container disk.
func booting(version, disk string) *release.Release {
	return &release.Release{Version: version, BootImages: &bootimages.Streams{Default: bootimages.Stream{"amd64": &bootimages.Images{KubeVirt: disk}}}}
}

// TestImagesAreKept has the platform keep boot images as the NodePool controller asks it to.
func TestImagesAreKept(t *testing.T) {
	for name, other := range map[string]bool{"in the management cluster": false, "in a cluster that a kubeconfig leads to": true} {
		t.Run("When boot images are kept "+name, func(t *testing.T) { keepImages(t, other) })
	}
}

func keepImages(t *testing.T, other bool) {
	s := newStage(t, other)
	keeper := s.platform.(platform.ImageKeeper)
	s.pool.UID, s.pool.Spec.ClusterName, s.pool.Spec.Arch = "6f2c", s.hc.Name, hyperv1.ArchitectureAMD64
	root := s.pool.Spec.Platform.Kubevirt.RootVolume
	root.Image, root.CacheStrategy = nil, &hyperv1.KubevirtCachingStrategy{Type: hyperv1.KubevirtCachingStrategyPVC}
	in := platformmachine.Input{HostedCluster: s.hc, NodePool: s.pool, Release: booting("4.22.1", "quay.io/rhcos/kubevirt@sha256:1")}
	// pass is what the controller does about the pool, but for removing old images.
	pass := func(g Gomega) *platformmachine.KeptImage {
		kept, err := keeper.KeptImage(t.Context(), s.admin, in)
		g.Expect(err).NotTo(HaveOccurred())
		s.pool.Status.Platform = kept.Status
		if !kept.There {
			g.Expect(keeper.KeepImage(t.Context(), s.admin, s.admin, in)).To(Succeed())
			g.Expect(keeper.KeepImage(t.Context(), s.admin, s.admin, in)).To(Succeed(), "a pass that was interrupted does it again")
		}
		return kept
	}
	disks := func(g Gomega) (names []string) {
		list, err := objects.List(t.Context(), s.admin, DataVolumeKind, s.vms)
		g.Expect(err).NotTo(HaveOccurred())
		for _, u := range list {
			names = append(names, u.GetName())
		}
		return names
	}
	first := ""
	t.Run("it should be imported once, as published", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(pass(g).There).To(BeFalse())
		g.Expect(pass(g).There).To(BeTrue())
		first = s.pool.Status.Platform.KubeVirt.CacheName
		g.Expect(disks(g)).To(ConsistOf(first))
		u := objects.New(DataVolumeKind, s.vms, first)
		g.Expect(s.admin.Get(t.Context(), client.ObjectKeyFromObject(u), u)).To(Succeed())
		g.Expect(first).To(HavePrefix("kv-boot-image-cache-"))
		g.Expect(u.GetLabels()).To(Equal(map[string]string{"hypershift.openshift.io/kubevirt-boot-image-role": "kv-boot-image-cache", "hypershift.openshift.io/nodepool-uid": "6f2c",
			hyperv1.IsKubeVirtRHCOSVolumeLabel: "true"}))
		g.Expect(u.GetAnnotations()).To(And(HaveKey("hypershift.openshift.io/kubevirt-boot-image-hash"),
			HaveKeyWithValue("cdi.kubevirt.io/storage.bind.immediate.requested", "true"), HaveKeyWithValue("cdi.kubevirt.io/storage.deleteAfterCompletion", "false")))
		g.Expect(u.Object["spec"]).To(Equal(map[string]any{
			"preallocation": true, "source": map[string]any{"registry": map[string]any{"url": "docker://quay.io/rhcos/kubevirt@sha256:1", "pullMethod": "node"}},
			"storage": map[string]any{"accessModes": []any{"ReadWriteMany"}, "storageClassName": "fast", "volumeMode": "Block", "resources": map[string]any{"requests": map[string]any{"storage": "32Gi"}}},
		}))
	})
	t.Run("machines should clone it and run", func(t *testing.T) {
		g := NewWithT(t)
		template, err := s.platform.MachineTemplate(in)
		g.Expect(err).NotTo(HaveOccurred())
		text := text(g, template.Object.(*unstructured.Unstructured).Object)
		g.Expect(text).To(And(ContainSubstring("name: "+first), ContainSubstring("namespace: "+s.vms), Not(ContainSubstring("docker://"))))
	})
	t.Run("another image should be imported beside it, and the first go when it is told", func(t *testing.T) {
		g := NewWithT(t)
		in.Release = booting("4.22.2", "quay.io/rhcos/kubevirt@sha256:2")
		kept := pass(g)
		second := kept.Status.KubeVirt.CacheName
		g.Expect(kept.Old).To(ConsistOf(first))
		g.Expect(disks(g)).To(ConsistOf(first, second))
		g.Expect(keeper.DropImages(t.Context(), s.admin, s.admin, s.pool, kept.Old)).To(Succeed())
		g.Expect(keeper.DropImages(t.Context(), s.admin, s.admin, s.pool, kept.Old)).To(Succeed(), "what is gone is fine")
		g.Expect(disks(g)).To(ConsistOf(second))
		g.Expect(pass(g).Old).To(BeEmpty())
	})
	t.Run("what another pool keeps should stay when the pool goes", func(t *testing.T) {
		g := NewWithT(t)
		theirs := *s.pool.DeepCopy()
		theirs.UID = "77aa"
		there := platformmachine.Input{HostedCluster: s.hc, NodePool: &theirs, Release: in.Release}
		kept, err := keeper.KeptImage(t.Context(), s.admin, there)
		g.Expect(err).NotTo(HaveOccurred())
		theirs.Status.Platform = kept.Status
		g.Expect(keeper.KeepImage(t.Context(), s.admin, s.admin, there)).To(Succeed())
		g.Expect(disks(g)).To(HaveLen(2))
		if other { // the user has deleted the Secret with the HostedCluster: its copy leads there
			g.Expect(s.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hc.Namespace, Name: "other"}})).To(Succeed())
		}
		g.Expect(keeper.DropImages(t.Context(), s.admin, s.admin, s.pool, nil)).To(Succeed())
		g.Expect(disks(g)).To(ConsistOf(kept.Status.KubeVirt.CacheName))
		if other {
			g.Expect(s.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "kubevirt-infra-credentials"}})).To(Succeed())
			g.Expect(keeper.DropImages(t.Context(), s.admin, s.admin, s.pool, nil)).To(Succeed(), "nobody can reach that cluster any more")
		}
	})
}
