package apply_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/testenv"
)

func TestMemory(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, newScheme(t))
	for name, tc := range map[string]struct {
		between func(*appsv1.Deployment) // by somebody else
		desired func(*appsv1.Deployment)
		writes  int
	}{
		"When nothing changed it should send nothing":                     {},
		"When somebody else changes a field of ours it should notice":     {between: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" }, writes: 1},
		"When somebody else changes another field it should send nothing": {between: func(d *appsv1.Deployment) { d.Labels["theirs"] = "x" }},
		"When something else is asked for it should notice":               {desired: func(d *appsv1.Deployment) { d.Labels["team"] = "b" }, writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ns, memory := env.Namespace(t), &apply.Memory{}
			for range 3 { // written, compared, remembered
				g.Expect(apply.New(c, "test").Remembering(memory).Apply(t.Context(), deployment(ns))).To(Succeed())
			}
			if tc.between != nil {
				live := &appsv1.Deployment{}
				g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, live)).To(Succeed())
				tc.between(live)
				g.Expect(c.Update(t.Context(), live, client.FieldOwner("somebody"))).To(Succeed())
			}
			desired := deployment(ns)
			if tc.desired != nil {
				tc.desired(desired)
			}
			counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
			applier := apply.New(counting, "test").Remembering(memory)
			g.Expect(applier.Apply(t.Context(), desired)).To(Succeed())
			g.Expect(counting.Writes()).To(Equal(tc.writes))
			live := &appsv1.Deployment{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, live)).To(Succeed())
			g.Expect(applier.Current(desired, live)).To(BeTrue())
		})
	}
}
