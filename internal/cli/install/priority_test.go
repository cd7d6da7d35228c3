package install

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/testenv"
)

func TestPriorityClasses(t *testing.T) {
	t.Run("When control planes and machines have classes they should never preempt, and stay below the operator and the system", func(t *testing.T) {
		g := NewWithT(t)
		previous := int32(0)
		for _, class := range priorityClasses {
			g.Expect(class.value).To(And(BeNumerically(">", previous), BeNumerically("<", 1_000_000_000)), class.name)
			previous = class.value
			if class.name != operatorPriorityClass {
				g.Expect(class.preemption).To(Equal(corev1.PreemptNever), class.name)
			}
		}
		g.Expect(priorityClasses[len(priorityClasses)-1].name).To(Equal(operatorPriorityClass))
	})

	c := testenv.Start(t).Client(t, connect.Scheme())
	apply := func(g Gomega, class *schedulingv1.PriorityClass, owner string) {
		u, err := connect.Unstructured(connect.Scheme(), class)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner))).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(t.Context(), class) })
	}
	upgrade := func(g Gomega, want *schedulingv1.PriorityClass) string {
		var out bytes.Buffer
		p := progress.New(&out, clock.RealClock{})
		objs := []client.Object{want}
		foreign, err := clearPriorityClasses(t.Context(), c, p, objs)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(applyAll(t.Context(), c, p, without(objs, foreign))).To(Succeed())
		return out.String()
	}
	live := func(g Gomega, name string) *schedulingv1.PriorityClass {
		class := &schedulingv1.PriorityClass{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Name: name}, class)).To(Succeed())
		return class
	}
	class := func(name string, preemption *corev1.PreemptionPolicy, description string) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000, PreemptionPolicy: preemption, Description: description}
	}
	never := ptr.To(corev1.PreemptNever)

	t.Run("When an older version's class may preempt it should be made anew, and stay when install runs again", func(t *testing.T) {
		g := NewWithT(t)
		apply(g, class("test-ours", nil, "of an older version"), connect.FieldOwner)
		before := live(g, "test-ours")
		g.Expect(preemptionOf(before)).To(Equal(corev1.PreemptLowerPriority))
		_, err := connect.Apply(t.Context(), c, class("test-ours", never, "etcd"))
		g.Expect(err).To(HaveOccurred(), "it can't be changed in place")
		g.Expect(upgrade(g, class("test-ours", never, "etcd"))).To(ContainSubstring("PriorityClass test-ours is recreated: it was 1000 with preemptionPolicy PreemptLowerPriority, and becomes 1000 with preemptionPolicy Never"))
		after := live(g, "test-ours")
		g.Expect(preemptionOf(after)).To(Equal(corev1.PreemptNever))
		g.Expect(after.UID).NotTo(Equal(before.UID))

		upgrade(g, class("test-ours", never, "etcd"))
		g.Expect(live(g, "test-ours").ResourceVersion).To(Equal(after.ResourceVersion))
	})
	t.Run("When a class came from a rendered manifest it should count as ours", func(t *testing.T) {
		g := NewWithT(t)
		apply(g, class("test-rendered", nil, "etcd"), "kubectl")
		upgrade(g, class("test-rendered", never, "etcd"))
		g.Expect(preemptionOf(live(g, "test-rendered"))).To(Equal(corev1.PreemptNever))
	})
	t.Run("When somebody else made a class of the same name it should stay, and the person be told", func(t *testing.T) {
		g := NewWithT(t)
		apply(g, class("test-foreign", nil, "ours, hands off"), "platform-team")
		before := live(g, "test-foreign")
		g.Expect(upgrade(g, class("test-foreign", never, "etcd"))).To(ContainSubstring("PriorityClass test-foreign is not ours and stays as it is"))
		g.Expect(live(g, "test-foreign").ResourceVersion).To(Equal(before.ResourceVersion))
	})
}
