// Package platformtest is the suite that every implementation of platform.Platform passes.
package platformtest

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release"
)

// Run checks the contract of platform.Platform on what newPlatform makes. objects are the Secrets and the like from which the platform
// takes credentials of HostedCluster clusters/demo; without any it may do without, or say what it misses.
func Run(t *testing.T, newPlatform func() platform.Platform, objects ...client.Object) {
	RunOn(t, newPlatform, NewExample(), objects...)
}

// Example is a cluster with a pool of machines, complete enough for a platform.
type Example struct {
	HostedCluster *hyperv1.HostedCluster
	NodePool      *hyperv1.NodePool
	Release       *release.Release
	// BootsNoRelease: machines run already when they are chosen, or boot what the pool names, so that they need no image of a release.
	BootsNoRelease bool
}

// NewExample has what all platforms have in common.
func NewExample() Example {
	e := Example{
		HostedCluster: &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}},
		NodePool:      &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"}, Spec: hyperv1.NodePoolSpec{ClusterName: "demo", Arch: hyperv1.ArchitectureAMD64}},
		// Every tag that a platform may ask for.
		Release: &release.Release{Version: "1.36.3", Image: "registry/release:1.36.3", Images: map[string]string{"local-node": "registry/node@sha256:0"}},
	}
	e.HostedCluster.Spec.InfraID = "demo-abcde"
	return e
}

// RunOn is Run with an example that the platform can work with.
func RunOn(t *testing.T, newPlatform func() platform.Platform, example Example, objects ...client.Object) {
	hc, pool, payload := example.HostedCluster, example.NodePool, example.Release

	t.Run("When the infrastructure object is computed twice it should be the same", func(t *testing.T) {
		g := NewWithT(t)
		endpoint := hyperv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
		first, err := newPlatform().InfraCR(hc.DeepCopy(), "clusters-demo", endpoint)
		g.Expect(err).NotTo(HaveOccurred())
		second, err := newPlatform().InfraCR(hc.DeepCopy(), "clusters-demo", endpoint)
		g.Expect(err).NotTo(HaveOccurred())
		if first == nil {
			g.Expect(second).To(BeNil())
			return
		}
		g.Expect(second).To(BeComparableTo(first))
		g.Expect(first.GetNamespace()).To(Equal("clusters-demo"))
	})
	t.Run("When there is no HostedControlPlane yet it should still say which provider runs", func(t *testing.T) {
		_, err := newPlatform().CAPIProvider(hc.DeepCopy(), nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When it has machines it should say which, and describe them the same way twice", func(t *testing.T) {
		template(t, newPlatform, example)
	})
	t.Run("When Cluster API manages machines it should have an infrastructure object with its kind, and a provider with container manager", func(t *testing.T) {
		g := NewWithT(t)
		if !newPlatform().Traits().Managed {
			return
		}
		infra, err := newPlatform().InfraCR(hc.DeepCopy(), "clusters-demo", hyperv1.APIEndpoint{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(infra).NotTo(BeNil())
		g.Expect(infra.GetObjectKind().GroupVersionKind().Empty()).To(BeFalse())
		provider, err := newPlatform().CAPIProvider(hc.DeepCopy(), nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(provider.Template.Spec.Containers).To(ContainElement(HaveField("Name", "manager")))
	})
	t.Run("When a release lacks what machines need it should be an error, and no panic", func(t *testing.T) {
		if !newPlatform().Traits().Managed || example.BootsNoRelease {
			return
		}
		_, err := newPlatform().MachineTemplate(machine.Input{HostedCluster: hc.DeepCopy(), NodePool: pool.DeepCopy(), Release: &release.Release{Version: payload.Version}})
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
	t.Run("When credentials are asked for they should be Secrets of the control plane's namespace, or it should say what is missing", func(t *testing.T) {
		secrets(t, newPlatform(), hc, "clusters-demo", nil)
		if len(objects) > 0 {
			secrets(t, newPlatform(), hc, "clusters-demo", objects)
		}
	})
	t.Run("When it has a provider that should be one small pod with the rights that it needs", func(t *testing.T) {
		provider(t, newPlatform(), hc)
	})
	t.Run("When the cluster goes it should need neither release nor credentials, and leave what is others'", func(t *testing.T) {
		deletion(t, newPlatform(), hc, "clusters-demo")
	})
	t.Run("When it is asked by many at a time it should answer each", func(t *testing.T) {
		concurrent(t, newPlatform(), hc, "clusters-demo")
	})
	t.Run("When nothing was made it should delete nothing and succeed, twice", func(t *testing.T) {
		g := NewWithT(t)
		c := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
		for range 2 {
			g.Expect(newPlatform().DeleteCredentials(t.Context(), c, hc.DeepCopy(), "clusters-demo")).To(Succeed())
		}
	})
}
