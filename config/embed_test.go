package config

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestCRDs(t *testing.T) {
	for name, tc := range map[string]struct {
		set     string
		preview bool
		wantErr string
	}{
		"When no set is named it should return the default set":           {set: ""},
		"When the default set is named it should return it":               {set: DefaultSet},
		"When previews are asked for it should add them":                  {set: TechPreviewSet, preview: true},
		"When an unknown set is named it should say which sets there are": {set: "nope", wantErr: `unknown set of CustomResourceDefinitions: "nope"; there are default, techpreview`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			crds, err := CRDs(tc.set)
			if tc.wantErr != "" {
				g.Expect(err).To(MatchError(ErrUnknownSet))
				g.Expect(err).To(MatchError(HavePrefix(tc.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, crd := range crds {
				names = append(names, crd.Name)
			}
			g.Expect(slices.IsSorted(names)).To(BeTrue())
			g.Expect(names).To(ContainElements(
				"controlplanecomponents.hypershift.openshift.io",
				"hostedclusters.hypershift.openshift.io",
				"hostedcontrolplanes.hypershift.openshift.io",
				"nodepools.hypershift.openshift.io",
			))
			g.Expect(slices.Contains(names, "hcpetcdbackups.hypershift.openshift.io")).To(Equal(tc.preview))
		})
	}
}

func TestDefinitionsAreTheCallers(t *testing.T) {
	t.Run("When a caller changes what it got others should not see that", func(t *testing.T) {
		g := NewWithT(t)
		before, err := PackageOperatorCRDs()
		g.Expect(err).NotTo(HaveOccurred())
		want := before[0].Spec.Versions[0].Name
		before[0].Spec.Versions[0].Name = "changed"
		before[0].Labels = map[string]string{"changed": "true"}
		again, err := PackageOperatorCRDs()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again[0].Spec.Versions[0].Name).To(Equal(want))
		g.Expect(again[0].Labels).NotTo(HaveKey("changed"))
	})
}

func TestCAPICRDs(t *testing.T) {
	g := NewWithT(t)
	crds, err := CAPICRDs()
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, crd := range crds {
		names = append(names, crd.Name)
		g.Expect(crd.Spec.Versions).To(HaveLen(1), "When nothing converts %s it should serve its storage version alone", crd.Name)
		g.Expect(crd.Spec.Conversion).To(BeNil(), crd.Name)
		g.Expect(crd.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/v1beta2", crd.Spec.Versions[0].Name), crd.Name)
	}
	g.Expect(names).To(ContainElements("clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "machinesets.cluster.x-k8s.io",
		"machinedeployments.cluster.x-k8s.io", "machinehealthchecks.cluster.x-k8s.io"))
}

func TestConvertedCRDs(t *testing.T) {
	for name, list := range map[string]func(Converter) ([]*apiextensionsv1.CustomResourceDefinition, error){
		"standard": ConvertedCAPICRDs, "private": ConvertedPrivateCAPICRDs,
	} {
		t.Run("When "+name+" definitions are converted it should serve both versions and store the last", func(t *testing.T) {
			g := NewWithT(t)
			crds, err := list(CAPIConverter("ns"))
			g.Expect(err).NotTo(HaveOccurred())
			both := 0
			var withWebhook []string
			for _, crd := range crds {
				last := crd.Spec.Versions[len(crd.Spec.Versions)-1]
				g.Expect(last.Storage && last.Served).To(BeTrue(), crd.Name)
				if len(crd.Spec.Versions) == 1 {
					g.Expect(crd.Spec.Conversion).To(BeNil(), "%s: a webhook for one version would only be one more thing that can fail", crd.Name)
					continue
				}
				both++
				withWebhook = append(withWebhook, crd.Name)
				g.Expect(crd.Spec.Versions).To(HaveLen(2), crd.Name)
				g.Expect(crd.Spec.Versions[0].Served).To(BeTrue(), crd.Name)
				g.Expect(crd.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/v1beta2", "v1beta2"), crd.Name)
				webhook := crd.Spec.Conversion.Webhook
				g.Expect(webhook.ConversionReviewVersions).To(Equal([]string{"v1"}))
				g.Expect(webhook.ClientConfig.CABundle).To(BeEmpty())
				g.Expect(*webhook.ClientConfig.Service.Path).To(Equal("/convert"))
				g.Expect(webhook.ClientConfig.Service.Name).To(Equal("capi-conversion-webhook-shim"))
				g.Expect(webhook.ClientConfig.Service.Namespace).To(Equal("ns"))
			}
			g.Expect(both).To(Equal(13))
			g.Expect(ConvertedNames(name == "private")).To(Equal(withWebhook))
		})
	}
}

// Every rule of ours must tell the user what is wrong; the API server's fallback is the bare expression.
func TestEveryRuleHasAMessage(t *testing.T) {
	lists := map[string]func() ([]*apiextensionsv1.CustomResourceDefinition, error){"hosted": HostedCRDs}
	for _, set := range Sets() {
		lists[set] = func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return CRDs(set) }
	}
	for set, list := range lists {
		crds, err := list()
		if err != nil {
			t.Fatal(err)
		}
		if len(crds) == 0 {
			t.Errorf("set %s is empty", set)
		}
		for _, crd := range crds {
			for _, v := range crd.Spec.Versions {
				walk(v.Schema.OpenAPIV3Schema, crd.Name, func(where string, s *apiextensionsv1.JSONSchemaProps) {
					for _, rule := range s.XValidations {
						if strings.TrimSpace(rule.Message) == "" && rule.MessageExpression == "" {
							t.Errorf("set %s: %s: the rule %q has no message", set, where, rule.Rule)
						}
					}
				})
			}
		}
	}
}

// walk calls visit for a schema and everything below it.
func walk(s *apiextensionsv1.JSONSchemaProps, where string, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(where, s)
	for name, p := range s.Properties {
		walk(&p, where+"."+name, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema, where+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(s.AdditionalProperties.Schema, where+"{}", visit)
	}
}

func TestPackageOperatorCRDs(t *testing.T) {
	g := NewWithT(t)
	crds, err := PackageOperatorCRDs()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(crds).To(HaveLen(13), "six kinds in both scopes, and HostedClusterPackage")
	for _, crd := range crds {
		g.Expect(crd.Spec.Group).To(Equal("package-operator.run"))
		g.Expect(strings.HasPrefix(crd.Name, "cluster")).To(Equal(crd.Spec.Scope == apiextensionsv1.ClusterScoped && crd.Spec.Names.Kind != "HostedClusterPackage"))
	}
}
