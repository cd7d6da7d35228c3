package provider

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"hcp.internal/karpenter/api"
)

func size(name, cpu, memory, price string) api.InstanceType {
	t := api.InstanceType{Name: name, CPU: resource.MustParse(cpu), Memory: resource.MustParse(memory)}
	if price != "" {
		p := resource.MustParse(price)
		t.Price = &p
	}
	return t
}

func TestChoose(t *testing.T) {
	class := &api.HyperShiftNodeClass{Spec: api.HyperShiftNodeClassSpec{InstanceTypes: []api.InstanceType{
		size("large", "4", "8Gi", ""), size("small", "1", "2Gi", ""), size("sale", "8", "16Gi", "500m")}}}
	for name, tc := range map[string]struct {
		requirements []v1.NodeSelectorRequirementWithMinValues
		cpu, want    string
	}{
		"When anything goes it should be the cheapest":                       {cpu: "100m", want: "sale"},
		"When types are named it should be the cheapest of them":             {requirements: in(corev1.LabelInstanceTypeStable, "large", "small"), cpu: "100m", want: "small"},
		"When the cheapest is too small it should be the next":               {requirements: in(corev1.LabelInstanceTypeStable, "large", "small"), cpu: "2", want: "large"},
		"When Karpenter asks for its own label, too, it should be no matter": {requirements: append(in(v1.NodePoolLabelKey, "burst"), in(corev1.LabelInstanceTypeStable, "small")...), cpu: "1", want: "small"},
		"When none is large enough there should be none":                     {cpu: "100", want: ""},
		"When another architecture is asked for there should be none":        {requirements: in(corev1.LabelArchStable, "s390x"), cpu: "1", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, claim := NewWithT(t), &v1.NodeClaim{}
			claim.Spec.Requirements = tc.requirements
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(tc.cpu)}
			got, ok := choose(class, claim)
			g.Expect(got.Name).To(Equal(tc.want))
			g.Expect(ok).To(Equal(tc.want != ""))
		})
	}
}

func in(key string, values ...string) []v1.NodeSelectorRequirementWithMinValues {
	return []v1.NodeSelectorRequirementWithMinValues{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}
}

func TestTemplateHash(t *testing.T) {
	template := func(secret, version, infra string) *Template {
		return &Template{Machine: map[string]any{"version": version, "bootstrap": map[string]any{"dataSecretName": secret}}, InfraTemplate: infra}
	}
	g := NewWithT(t)
	same := template("data-1", "1.36.3", "t-1").Hash()
	g.Expect(template("data-1", "1.36.3", "t-1").Hash()).To(Equal(same))
	for _, other := range []*Template{template("data-2", "1.36.3", "t-1"), template("data-1", "1.36.4", "t-1"), template("data-1", "1.36.3", "t-2")} {
		g.Expect(other.Hash()).NotTo(Equal(same))
	}
}

func TestProviderID(t *testing.T) {
	g, m := NewWithT(t), Machines{Namespace: "clusters-demo"}
	g.Expect(m.Name(m.ProviderID("burst-abcde"))).To(Equal("burst-abcde"))
	g.Expect(m.Name("local://clusters-other/burst-abcde")).To(BeEmpty())
	g.Expect(m.Name("aws:///zone/i-1")).To(BeEmpty())
}
