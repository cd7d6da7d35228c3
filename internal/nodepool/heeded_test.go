package nodepool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// TestFieldsOfNodePool changes every field that is said to be heeded, and every one that is not, on both platforms.
func TestFieldsOfNodePool(t *testing.T) {
	for _, platform := range []string{"Local", "None"} {
		bases := map[string]map[string]any{}
		for name, change := range goldenPools {
			obs := example(t, change)
			spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&obs.pool.Spec)
			if err != nil {
				t.Fatal(err)
			}
			spec["platform"] = map[string]any{"type": platform}
			bases[name] = spec
		}
		supporttest.Proof{Table: support.Of("NodePool"), By: "nodepool", Platform: platform, Nothing: true, Bases: bases,
			Render: func(spec map[string]any) (string, bool) { return renderedPool(t, spec) }}.Run(t)
	}
}

// renderedPool is what passes make until a pool has its machines. Conditions count: that a value is refused shows that it is read.
func renderedPool(t *testing.T, spec map[string]any) (string, bool) {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		return "", false
	}
	decoded := hyperv1.NodePoolSpec{}
	if json.Unmarshal(raw, &decoded) != nil {
		return "", false
	}
	obs := example(t, func(o *observed) {
		o.pool.Spec = decoded
		o.hc.Spec.Platform.Type = decoded.Platform.Type
	})
	b := &strings.Builder{}
	first := planFor(obs, noon, "00000000-0000-4000-8000-000000000000")
	second := planFor(settled(obs, first), noon, "unused")
	for _, p := range []plan{first, second} {
		for _, objs := range [][]client.Object{p.apply, p.after} {
			text, _ := json.Marshal(objs)
			b.Write(text)
		}
		for _, obj := range []any{p.createToken, p.createTemplate, p.createSet, p.workload} {
			text, _ := json.Marshal(obj)
			b.Write(text)
		}
		for _, c := range p.conditions {
			if decoded.Platform.Type != hyperv1.NonePlatform && c.Type != hyperv1.AllFieldsHeeded && c.Status == corev1.ConditionFalse && c.Reason == hyperv1.NodePoolValidationFailedReason && c.Type != hyperv1.NodePoolValidTuningConfigConditionType {
				fmt.Fprintln(b, c.Type, c.Message)
			}
		}
	}
	return b.String(), true
}

func TestAllFieldsHeeded(t *testing.T) {
	of := func(mutate ...func(*observed)) hyperv1.NodePoolCondition {
		p := planFor(example(t, mutate...), noon, "x")
		for _, c := range p.conditions {
			if c.Type == hyperv1.AllFieldsHeeded {
				return c
			}
		}
		return hyperv1.NodePoolCondition{}
	}
	t.Run("When everything is heeded it should say so", func(t *testing.T) {
		NewWithT(t).Expect(of().Status).To(Equal(corev1.ConditionTrue))
	})
	t.Run("When an operating system is chosen it should say that nobody heeds it", func(t *testing.T) {
		g := NewWithT(t)
		c := of(func(o *observed) { o.pool.Spec.OSImageStream.Name = "rhel-10" })
		g.Expect(c.Status).To(Equal(corev1.ConditionFalse))
		g.Expect(c.Message).To(HavePrefix("spec.osImageStream: "))
	})
	t.Run("When the release is one of OpenShift an operating system and tuning should be heeded, as the table says", func(t *testing.T) {
		g := NewWithT(t)
		for _, field := range []string{"spec.osImageStream", "spec.tuningConfig"} {
			e, ok := support.Of("NodePool").Lookup(field, "")
			g.Expect(ok).To(BeTrue(), field)
			g.Expect(e.ForPayloads().Verdict).To(Equal(support.Heeded), field)
		}
		c := of(payloadExample, func(o *observed) {
			o.pool.Spec.OSImageStream.Name = "rhel-9"
			o.pool.Spec.TuningConfig = []corev1.LocalObjectReference{{Name: "tuned"}}
		})
		g.Expect(c.Message).NotTo(Or(BeEmpty(), ContainSubstring("osImageStream"), ContainSubstring("tuningConfig")))
	})
	t.Run("When the platform is None it should say that nobody makes machines", func(t *testing.T) {
		g := NewWithT(t)
		c := of(func(o *observed) {
			o.pool.Spec.Platform.Type, o.hc.Spec.Platform.Type = hyperv1.NonePlatform, hyperv1.NonePlatform
		})
		g.Expect(c.Message).To(ContainSubstring("spec.replicas: on platform None you make the machines"))
	})
}
