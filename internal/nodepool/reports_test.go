package nodepool

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
)

// telling is a platform that reports of its machines.
type telling struct{ platform.Platform }

func (telling) MachineKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TellingMachine"}
}

func (telling) MachineConditions(list []unstructured.Unstructured) []hyperv1.NodePoolCondition {
	return []hyperv1.NodePoolCondition{{Type: hyperv1.NodePoolKubeVirtLiveMigratableType, Status: corev1.ConditionTrue, Reason: hyperv1.AsExpectedReason, Message: fmt.Sprint(len(list), " machines")}}
}

func TestPlatformReportsOfMachines(t *testing.T) {
	const kind = hyperv1.NodePoolKubeVirtLiveMigratableType
	told := func(t *testing.T, machines int) *observed {
		obs := example(t, func(o *observed) { o.machines = make([]clusterv1.Machine, machines) })
		obs = settled(obs, planFor(obs, noon, "token"))
		obs.platform, obs.infraMachines = telling{obs.platform}, make([]unstructured.Unstructured, machines)
		return obs
	}
	t.Run("When a platform reports of machines and none is to be changed its condition should be set, and no machine be changed", func(t *testing.T) {
		g := NewWithT(t)
		p := planFor(told(t, 2), noon, "unused")
		g.Expect(of(p, kind)).To(Equal("True/AsExpected: 2 machines"))
		g.Expect(p.retag).To(BeEmpty())
		g.Expect(p.recheckAfter).To(Equal(reportAgain), "no event tells what the provider says of a machine")
	})
	t.Run("When there are no machines nothing should be looked for again", func(t *testing.T) {
		g := NewWithT(t)
		p := planFor(told(t, 0), noon, "unused")
		g.Expect(of(p, kind)).To(Equal("True/AsExpected: 0 machines"))
		g.Expect(p.recheckAfter).To(BeZero())
	})
	t.Run("When a platform has nothing to report no condition should be set", func(t *testing.T) {
		obs := told(t, 2)
		obs.platform = obs.platform.(telling).Platform
		NewWithT(t).Expect(of(planFor(obs, noon, "unused"), kind)).To(BeEmpty())
	})
	t.Run("When machines are to be changed those of the template's kind should be read, else those of the platform's", func(t *testing.T) {
		g := NewWithT(t)
		obs := told(t, 1)
		g.Expect(obs.infraKind().Kind).To(Equal("TellingMachine"))
		changed := *obs.template
		changed.Retag = &machine.Retag{Kind: schema.GroupVersionKind{Kind: "OtherMachine"}, Field: "tags", Value: map[string]any{"a": "b"}}
		obs.template = &changed
		g.Expect(obs.infraKind().Kind).To(Equal("OtherMachine"))
		g.Expect(planFor(obs, noon, "unused").retag).To(HaveLen(1))
		obs.template, obs.machines = &machine.Template{}, nil
		g.Expect(obs.infraKind().Empty()).To(BeTrue())
	})
	t.Run("When something else is due sooner it should stay so", func(t *testing.T) {
		p := &pass{obs: told(t, 1)}
		p.recheck(time.Second)
		p.reportOfPlatform()
		NewWithT(t).Expect(p.recheckAfter).To(Equal(time.Second))
	})
}

func TestBootImagesAreKept(t *testing.T) {
	keeping := func(t *testing.T, kept *machine.KeptImage) *observed {
		obs := example(t)
		obs = settled(obs, planFor(obs, noon, "token"))
		obs.kept = kept
		return obs
	}
	t.Run("When the template is new the image should be kept, and others stay", func(t *testing.T) {
		g := NewWithT(t)
		obs := keeping(t, &machine.KeptImage{Old: []string{"a"}})
		obs.templates = nil
		p := planFor(obs, noon, "unused")
		g.Expect(p.kept).To(Equal(obs.kept))
		g.Expect(p.unkept).To(BeEmpty())
		g.Expect(p.recheckAfter).To(Equal(retryKept))
	})
	t.Run("When machines are still made from another template others should stay", func(t *testing.T) {
		obs := keeping(t, &machine.KeptImage{There: true, Old: []string{"a"}})
		obs.templates = append(obs.templates, obs.templates[0])
		obs.templates[1].Name = "another"
		NewWithT(t).Expect(planFor(obs, noon, "unused").unkept).To(BeEmpty())
	})
	t.Run("When all machines are made from the template others should go", func(t *testing.T) {
		NewWithT(t).Expect(planFor(keeping(t, &machine.KeptImage{There: true, Old: []string{"a"}}), noon, "unused").unkept).To(Equal([]string{"a"}))
	})
	t.Run("When it can't be asked what is kept the condition should say so, and it be asked again", func(t *testing.T) {
		g := NewWithT(t)
		obs := keeping(t, nil)
		obs.keptErr = errors.New("it refuses")
		obs.templateErr = obs.keptErr
		p := planFor(obs, noon, "unused")
		g.Expect(of(p, hyperv1.NodePoolValidMachineTemplateConditionType)).To(HaveSuffix("it refuses"))
		g.Expect(p.recheckAfter).To(Equal(retryKept))
		g.Expect(p.kept).To(BeNil())
	})
	t.Run("When an image is to be kept machines should be described with its name before the status has it", func(t *testing.T) {
		g := NewWithT(t)
		status := &hyperv1.NodePoolPlatformStatus{KubeVirt: &hyperv1.KubeVirtNodePoolStatus{CacheName: "a"}}
		obs := keeping(t, &machine.KeptImage{Status: status})
		g.Expect(obs.machineInput().NodePool.Status.Platform).To(Equal(status))
		g.Expect(obs.pool.Status.Platform).To(BeNil())
	})
}
