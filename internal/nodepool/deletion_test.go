package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestPlanTeardown(t *testing.T) {
	machine := func(name string, annotations ...string) clusterv1.Machine {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
		for _, a := range annotations {
			m.Annotations[a] = ""
		}
		return m
	}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	template := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "template"}}
	for name, tc := range map[string]struct {
		left             remains
		abandon, deletes []string
		waits            string
	}{
		"When a pool goes alone its machines should be drained": {
			left: remains{workloads: []client.Object{deployment}, machines: []clusterv1.Machine{machine("a")}}, deletes: []string{"workers"}, waits: "Machines: a"},
		"When the cluster goes, too, its machines should not be drained": {
			left:    remains{clusterGoes: true, workloads: []client.Object{deployment}, machines: []clusterv1.Machine{machine("a"), machine("b", clusterv1.ExcludeNodeDrainingAnnotation)}},
			abandon: []string{"a", "b"}, deletes: []string{"workers"}, waits: "Machines: a, b"},
		"When machines are marked already they should not be marked again": {
			left:    remains{clusterGoes: true, machines: []clusterv1.Machine{machine("a", abandonedAnnotations...)}},
			deletes: []string{"a"}, waits: "Machines: a"},
		"When machines are gone what they were made from should go": {left: remains{templates: []metav1.PartialObjectMetadata{template}}, deletes: []string{"template"}},
		"When nothing is left it should be done":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := planTeardown(tc.left)
			var abandon, deletes []string
			for _, m := range got.abandon {
				abandon = append(abandon, m.Name)
			}
			for _, obj := range got.delete {
				deletes = append(deletes, obj.GetName())
			}
			g.Expect(abandon).To(Equal(tc.abandon))
			g.Expect(deletes).To(Equal(tc.deletes))
			g.Expect(got.waiting).To(ContainSubstring(tc.waits))
			g.Expect(got.waiting == "").To(Equal(tc.waits == ""))
		})
	}
}

func TestMachinesOfAClusterThatGoes(t *testing.T) {
	t.Run("When the HostedCluster is deleted Cluster API should be told not to drain", func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		w := newWorld(t)
		g.Expect(w.client.Create(ctx, examplePool(w.ns))).To(Succeed())
		g.Expect(w.settle(ctx, w.client)).To(Succeed())
		machine := w.machine(t, "workers-1", w.deployment(t))
		g.Expect(w.client.Delete(ctx, exampleHostedCluster(w.ns))).To(Succeed())
		g.Expect(w.client.Delete(ctx, w.pool(t))).To(Succeed())
		g.Expect(w.settle(ctx, w.client)).To(Succeed())
		g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		for _, name := range abandonedAnnotations {
			g.Expect(machine.Annotations).To(HaveKey(name))
		}
	})
}
