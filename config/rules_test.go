package config

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldestEnvironment is what rules of a new definition may use on kube-apiserver 1.30, the oldest that the definitions are for: an API
// server takes no function into new definitions that its predecessor would not know, in case it is rolled back. So isIP and cidr,
// which came with 1.30, can't be used.
var oldestEnvironment = version.MajorMinor(1, 29)

// TestRulesOnOldestAPIServer compiles every rule with the functions that the oldest API server has, and estimates its cost as
// API servers do when a definition is installed.
func TestRulesOnOldestAPIServer(t *testing.T) {
	for _, set := range append(Sets(), hosted) {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			crds, err := CRDs(set)
			if set == hosted {
				crds, err = HostedCRDs()
			}
			g.Expect(err).NotTo(HaveOccurred())
			for _, crd := range crds {
				for _, v := range crd.Spec.Versions {
					root := &apiextensions.JSONSchemaProps{}
					g.Expect(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, root, nil)).To(Succeed())
					c := &ruleCompiler{env: environment.MustBaseEnvSet(oldestEnvironment)}
					c.walk(root, validation.RootCELContext(root), "")
					g.Expect(c.problems).To(BeEmpty(), "%s %s", crd.Name, v.Name)
					g.Expect(c.total).To(BeNumerically("<=", validation.StaticEstimatedCRDCostLimit), "%s %s", crd.Name, v.Name)
					if c.rules > 0 {
						t.Logf("%s: %d rules, %.1f %% of the budget, dearest %.1f %% of its own: %s", crd.Name, c.rules,
							100*float64(c.total)/validation.StaticEstimatedCRDCostLimit, 100*float64(c.most)/validation.StaticEstimatedCostLimit, c.mostAt)
					}
				}
			}
		})
	}
}

// ruleCompiler adds up what rules may cost.
type ruleCompiler struct {
	env         *environment.EnvSet
	rules       int
	total, most uint64
	mostAt      string
	problems    []string
}

func (c *ruleCompiler) walk(s *apiextensions.JSONSchemaProps, at *validation.CELSchemaContext, path string) {
	c.compile(s, at, path)
	for name, prop := range s.Properties {
		c.walk(&prop, at.ChildPropertyContext(&prop, name), path+"."+name)
	}
	if s.Items != nil && s.Items.Schema != nil {
		c.walk(s.Items.Schema, at.ChildItemsContext(s.Items.Schema), path+"[]")
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		c.walk(s.AdditionalProperties.Schema, at.ChildAdditionalPropertiesContext(s.AdditionalProperties.Schema), path+"{}")
	}
}

func (c *ruleCompiler) compile(s *apiextensions.JSONSchemaProps, at *validation.CELSchemaContext, path string) {
	if len(s.XValidations) == 0 {
		return
	}
	info, err := at.TypeInfo()
	if err != nil || info == nil {
		c.problems = append(c.problems, fmt.Sprintf("%s has no type for rules: %v", path, err))
		return
	}
	results, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, c.env, cel.NewExpressionsEnvLoader())
	if err != nil {
		c.problems = append(c.problems, fmt.Sprintf("%s: %v", path, err))
		return
	}
	for i, r := range results {
		c.rules++
		times := r.MaxCardinality
		if at.MaxCardinality != nil {
			times = *at.MaxCardinality
		}
		cost := r.MaxCost * times
		if times > 0 && cost/times != r.MaxCost {
			cost = ^uint64(0) // more than there are numbers for
		}
		if r.Error != nil {
			c.problems = append(c.problems, fmt.Sprintf("%s: %s: %v", path, s.XValidations[i].Rule, r.Error))
		}
		if cost > validation.StaticEstimatedCostLimit {
			c.problems = append(c.problems, fmt.Sprintf("%s: %s: may cost %d of %d", path, s.XValidations[i].Rule, cost, validation.StaticEstimatedCostLimit))
		}
		if c.total += cost; cost > c.most {
			c.most, c.mostAt = cost, path
		}
	}
}
