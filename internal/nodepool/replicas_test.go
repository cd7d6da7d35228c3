package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
)

// silent is a platform that does not say what a machine offers.
type silent struct{ platform.Platform }

func (s silent) Traits() machine.Traits {
	traits := s.Platform.Traits()
	traits.ScaleFromZero = false
	return traits
}

func TestReplicasWanted(t *testing.T) {
	fromZero := func(t *testing.T) *observed {
		return example(t, func(o *observed) {
			o.pool.Spec.Replicas, o.pool.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](0), Max: 3}
		})
	}
	t.Run("When a pool could not start from none it should make one machine and report that this one is missing", func(t *testing.T) {
		g := NewWithT(t)
		obs := fromZero(t)
		obs.platform, obs.template.Capacity = silent{obs.platform}, nil
		p := planFor(obs, noon, "token")
		g.Expect(p.workload.(*clusterv1.MachineDeployment).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(of(p, hyperv1.NodePoolAllMachinesReadyConditionType)).To(HavePrefix("False/NotFound"))
		g.Expect(p.workload.GetAnnotations()).To(HaveKeyWithValue(machines.MinSizeAnnotation, "1"), "an autoscaler that is told 0 takes the machine away, and the next pass makes it again")
		g.Expect(of(p, hyperv1.NodePoolAutoscalingEnabledConditionType)).To(ContainSubstring("the pool keeps one machine"))
	})
	t.Run("When a pool may start from none it should make none and miss none", func(t *testing.T) {
		g := NewWithT(t)
		p := planFor(fromZero(t), noon, "token")
		g.Expect(p.workload.(*clusterv1.MachineDeployment).Spec.Replicas).To(HaveValue(BeEquivalentTo(0)))
		g.Expect(of(p, hyperv1.NodePoolAllMachinesReadyConditionType)).To(HavePrefix("True/"))
		g.Expect(p.workload.GetAnnotations()).To(HaveKeyWithValue(machines.MinSizeAnnotation, "0"))
	})
	t.Run("When a pool says nothing of its least size and is changed in place it should tell autoscalers of its floor, too", func(t *testing.T) {
		g := NewWithT(t)
		obs := fromZero(t)
		obs.pool.Spec.AutoScaling.Min, obs.pool.Spec.Management = nil, hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace}
		obs.platform, obs.template.Capacity = silent{obs.platform}, nil
		g.Expect(planFor(obs, noon, "token").createSet.Annotations).To(HaveKeyWithValue(machines.MinSizeAnnotation, "1"))
	})
}
