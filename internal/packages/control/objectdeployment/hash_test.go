package objectdeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
)

func TestHash(t *testing.T) {
	deployment := func(uid types.UID, phase string) *v1alpha1.ObjectDeployment {
		d := &v1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: uid, Generation: 1}}
		d.Spec.Template.Spec.Phases = []v1alpha1.ObjectSetTemplatePhase{{Name: phase}}
		return d
	}
	hashOf := func(r *Reconciler, d *v1alpha1.ObjectDeployment) string {
		return r.hash(client.ObjectKeyFromObject(d), d)
	}

	t.Run("When one is deleted and made anew between two passes it should not have the hash of the former", func(t *testing.T) {
		g := NewWithT(t)
		r := &Reconciler{}
		former := hashOf(r, deployment("1", "x"))
		g.Expect(hashOf(r, deployment("2", "y"))).To(And(Not(Equal(former)), Equal(hashOf(&Reconciler{}, deployment("2", "y")))))
	})
	t.Run("When the spec or the count of collisions changes it should compute the hash anew", func(t *testing.T) {
		g := NewWithT(t)
		r := &Reconciler{}
		d := deployment("1", "x")
		first := hashOf(r, d)
		d.Spec.Template.Spec.Phases[0].Name, d.Generation = "y", 2
		second := hashOf(r, d)
		g.Expect(second).NotTo(Equal(first))
		d.Status.CollisionCount = ptr.To[int32](0)
		g.Expect(hashOf(r, d)).NotTo(Equal(second))
	})
	t.Run("When nothing changes it should not compute it again", func(t *testing.T) {
		g := NewWithT(t)
		r := &Reconciler{}
		d := deployment("1", "x")
		first := hashOf(r, d)
		d.Spec.Template.Spec.Phases[0].Name = "not looked at: the generation is the same"
		g.Expect(hashOf(r, d)).To(Equal(first))
	})
}
