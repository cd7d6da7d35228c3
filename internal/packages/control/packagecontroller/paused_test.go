package packagecontroller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/environment"
)

func TestStampPaused(t *testing.T) {
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(time.Now())}
	unpackedAt := func(g Gomega, edit func(*v1alpha1.Package)) int64 {
		p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: v1alpha1.PackageSpec{Image: "registry.example/addon:v1"}}
		hash, err := r.specHash(p.Spec)
		g.Expect(err).NotTo(HaveOccurred())
		p.Status.UnpackedHash = hash + "-environment"
		r.set(p, unpacked(nil, false)...)
		p.Spec.Paused, p.Generation = true, 2
		edit(p)
		g.Expect(r.stampPaused(p)).To(Succeed())
		return conditions.Get(p.Status.Conditions, v1alpha1.ConditionUnpacked).ObservedGeneration
	}
	t.Run("When a Package is merely paused it should say that it is unpacked, for whoever waits for the pause to arrive", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(unpackedAt(g, func(*v1alpha1.Package) {})).To(Equal(int64(2)))
	})
	t.Run("When it is to install something else, too, it should not", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(unpackedAt(g, func(p *v1alpha1.Package) { p.Spec.Image = "registry.example/addon:v2" })).To(Equal(int64(1)))
	})
}

func TestInTurn(t *testing.T) {
	t.Run("When only the environment differs, and a rollout controls the Package, it should wait for its turn", func(t *testing.T) {
		g := NewWithT(t)
		want := origin{spec: "spec", environment: "new"}
		g.Expect(parseOrigin("spec-old").outdated(want)).To(BeTrue())
		g.Expect(parseOrigin("spec-new").outdated(want)).To(BeFalse())
		g.Expect(parseOrigin("spec").outdated(want)).To(BeFalse(), "it does not look at the environment")
		g.Expect(parseOrigin("other-old").outdated(want)).To(BeFalse(), "the spec changed, too")
		p := &v1alpha1.Package{}
		g.Expect(inTurn(p)).To(BeFalse())
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "package-operator.run/v1alpha1", Kind: "HostedClusterPackage", Name: "addon", Controller: ptr.To(true)}}
		g.Expect(inTurn(p)).To(BeTrue())
	})
	t.Run("When a Package says which environment it waits for a rollout should read the same", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(environment.Wanted([]metav1.Condition{environment.Outdated("3f2a")})).To(Equal("3f2a"))
		g.Expect(environment.Wanted(nil)).To(BeEmpty())
	})
}
