package nodepool

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/rolls"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/release"
)

const unrequested = hyperv1.NodePoolUnrequestedRolloutConditionType

// anotherOperator changes what this operator makes of the same settings.
func anotherOperator(obs *observed) *observed {
	next := *obs
	template := *obs.template
	template.Identity = "what another operator makes of it"
	next.template = &template
	return &next
}

func TestUnrequestedRollout(t *testing.T) {
	obs := example(t)
	first := planFor(obs, noon, "token-a")
	rest := settled(obs, first)
	later := noon.Add(time.Hour)
	made := machines.GenerationOf(&rest.deployment.Spec.Template)
	generation := func(p plan) machines.Generation {
		return machines.GenerationOf(&p.workload.(*clusterv1.MachineDeployment).Spec.Template)
	}
	held := planFor(anotherOperator(rest), later, "unused")

	t.Run("When an operator makes other machines of the same settings it should hold them, name the change and say how to let it go", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(generation(held)).To(Equal(made))
		g.Expect(of(held, unrequested)).To(And(HavePrefix("True/Held: "), ContainSubstring("spec.platform, as machine template: "), ContainSubstring(hyperv1.NodePoolAllowRolloutAnnotation+"=")))
	})
	t.Run("When it is held it should write nothing again", func(t *testing.T) {
		again := planFor(anotherOperator(settled(rest, held)), later.Add(time.Hour), "unused")
		NewWithT(t).Expect(again.annotations).NotTo(HaveKey(hyperv1.NodePoolRollsAnnotation))
	})
	t.Run("When the operator goes back it should have nothing to hold", func(t *testing.T) {
		g := NewWithT(t)
		back := planFor(settled(rest, held), later.Add(time.Hour), "unused")
		g.Expect(back.removed).To(ContainElement(unrequested))
		note, ok := rolls.Parse(back.annotations[hyperv1.NodePoolRollsAnnotation])
		g.Expect(ok && note.Held == "" && len(note.Rolls) == 0).To(BeTrue(), "%+v", note)
	})
	t.Run("When it is allowed it should replace machines, and note why", func(t *testing.T) {
		g := NewWithT(t)
		note, _ := rolls.Parse(held.annotations[hyperv1.NodePoolRollsAnnotation])
		next := anotherOperator(settled(rest, held))
		next.pool = next.pool.DeepCopy()
		next.pool.Annotations[hyperv1.NodePoolAllowRolloutAnnotation] = note.Held
		p := planFor(next, later, "unused")
		g.Expect(generation(p)).NotTo(Equal(made))
		g.Expect(p.removed).To(ContainElement(unrequested))
		note, _ = rolls.Parse(p.annotations[hyperv1.NodePoolRollsAnnotation])
		g.Expect(note.Rolls).To(HaveLen(1))
	})
	t.Run("When a user asks for other machines it should replace them", func(t *testing.T) {
		next := anotherOperator(configured(settled(rest, held), "b"))
		p := planFor(next, later, "token-b")
		p = planFor(settled(next, p), later.Add(time.Minute), "unused")
		NewWithT(t).Expect(generation(p)).NotTo(Equal(made))
	})
	t.Run("When the number of machines changes it should make them as before", func(t *testing.T) {
		g := NewWithT(t)
		next := anotherOperator(settled(rest, held))
		next.pool = next.pool.DeepCopy()
		next.pool.Spec.Replicas = ptr.To[int32](5)
		next.pool.Generation++
		p := planFor(next, later, "unused")
		g.Expect(generation(p)).To(Equal(made))
		g.Expect(p.workload.(*clusterv1.MachineDeployment).Spec.Replicas).To(HaveValue(BeEquivalentTo(5)))
	})
	t.Run("When fifty pools are met by another operator it should hold every one", func(t *testing.T) {
		for i := range 50 {
			g := NewWithT(t)
			obs := example(t, func(o *observed) { o.pool.Name = fmt.Sprintf("workers-%d", i) })
			rest := settled(obs, planFor(obs, noon, "token"))
			p := planFor(anotherOperator(rest), later, "unused")
			g.Expect(generation(p)).To(Equal(machines.GenerationOf(&rest.deployment.Spec.Template)))
			g.Expect(of(p, unrequested)).To(ContainSubstring("nodepool workers-%d ", i))
		}
	})
}

// retagged gives another release for the same image.
type retagged struct{ version string }

func (r *retagged) Lookup(ctx context.Context, image string, secret []byte) (*release.Release, error) {
	rel, err := fixedReleases{}.Lookup(ctx, image, secret)
	if err == nil && r.version != "" {
		rel.Version, rel.KubernetesVersion = r.version, r.version
	}
	return rel, err
}

func TestUnrequestedRolloutOnAPIServer(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	g := NewWithT(t)
	tag := &retagged{}
	w.releases = tag
	g.Expect(w.client.Create(ctx, examplePool(w.ns))).To(Succeed())
	g.Expect(w.settle(ctx, w.client)).To(Succeed())
	deployment := func() machines.Generation {
		md := &clusterv1.MachineDeployment{}
		g.Expect(w.client.Get(ctx, client.ObjectKey{Namespace: w.hcpNS, Name: "workers"}, md)).To(Succeed())
		return machines.GenerationOf(&md.Spec.Template)
	}
	made := deployment()
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	tag.version = "1.36.2"
	g.Expect(w.settle(ctx, w.client)).To(Succeed())

	t.Run("When the same settings mean another release it should hold machines and say so in the condition", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(deployment()).To(Equal(made))
		c := findCondition(w.pool(t).Status.Conditions, unrequested)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Message).To(ContainSubstring("release: 1.36.3 → 1.36.2"))
	})
	t.Run("When it is allowed it should replace machines and take the condition away", func(t *testing.T) {
		g := NewWithT(t)
		pool := w.pool(t)
		note, _ := rolls.Parse(pool.Annotations[hyperv1.NodePoolRollsAnnotation])
		before := pool.DeepCopy()
		pool.Annotations[hyperv1.NodePoolAllowRolloutAnnotation] = note.Held
		g.Expect(w.client.Patch(ctx, pool, client.MergeFrom(before))).To(Succeed())
		w.clock.SetTime(w.clock.Now().Add(time.Hour)) // the ignition server, which is not there, is waited for no longer
		g.Expect(w.settle(ctx, w.client)).To(Succeed())
		g.Expect(deployment()).NotTo(Equal(made))
		g.Expect(findCondition(w.pool(t).Status.Conditions, unrequested)).To(BeNil())
	})
}
