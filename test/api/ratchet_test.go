package api_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/testenv"
)

// TestRatcheting stores an object for every way to break a rule while there are no rules, has the rules back, and changes something
// else: what is broken may stay as long as it is left alone.
func TestRatcheting(t *testing.T) {
	for kind, change := range map[string]string{
		"HostedCluster": `spec: {channel: other}`,
		"NodePool":      `spec: {nodeLabels: {a: b}}`,
	} {
		t.Run(kind, func(t *testing.T) { ratchet(t, kind, change) })
	}
}

func ratchet(t *testing.T, kind, change string) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	ns := env.Namespace(t)
	crds, err := config.CRDs(config.TechPreviewSet)
	g.Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Spec.Names.Kind == kind })
	ruled := renamed(crds[i], "ratchet.")
	before := ruled.DeepCopy()
	withoutRules(before.Spec.Versions[0].Schema.OpenAPIV3Schema)
	env.Install(t, before)

	stored := map[string]*unstructured.Unstructured{}
	f := readRules(t, kind)
	for _, rule := range f.Rules {
		if rule.Old != nil {
			continue // about changes, so nothing can break it before there is one
		}
		for message, bad := range rule.Bad {
			if stored[rule.At[0]+": "+message] != nil {
				continue
			}
			obj := f.object(t, kind, rule.Base)
			set(t, obj.Object, rule.At[0], bad)
			obj.SetAPIVersion(ruled.Spec.Group + "/v1beta1")
			obj.SetNamespace(ns)
			obj.SetName(fmt.Sprintf("broken-%d", len(stored)))
			err := c.Create(t.Context(), obj)
			if apierrors.IsInvalid(err) {
				continue // something besides rules forbids it too, so it was never stored
			}
			g.Expect(err).NotTo(HaveOccurred(), "%s: %s", rule.At[0], message)
			stored[rule.At[0]+": "+message] = obj
		}
	}

	current := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(ruled), current)).To(Succeed())
	current.Spec = ruled.Spec
	g.Expect(c.Update(t.Context(), current)).To(Succeed())
	g.Eventually(func() error {
		obj := slices.Collect(maps.Values(stored))[0].DeepCopy()
		obj.SetResourceVersion("")
		obj.SetName("probe")
		return c.Create(t.Context(), obj, client.DryRunAll)
	}).WithTimeout(time.Minute).ShouldNot(Succeed(), "the rules should be in force")

	for _, at := range slices.Sorted(maps.Keys(stored)) {
		if at[:6] == "status" {
			continue // dropped on creation
		}
		t.Run(at, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(c.Update(t.Context(), merge(t, stored[at], `metadata: {labels: {a: b}}`), client.DryRunAll)).To(Succeed(), "a label may change")
			g.Expect(c.Update(t.Context(), merge(t, stored[at], change), client.DryRunAll)).To(Succeed(), "another part may change")
		})
	}
}

// renamed returns a copy of a definition in another group, so that it can stand beside the original.
func renamed(crd *apiextensionsv1.CustomResourceDefinition, prefix string) *apiextensionsv1.CustomResourceDefinition {
	out := crd.DeepCopy()
	out.Spec.Group = prefix + out.Spec.Group
	out.Name = out.Spec.Names.Plural + "." + out.Spec.Group
	return out
}

// withoutRules removes the rules of a schema and of what is below it.
func withoutRules(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations = nil
	for name, prop := range s.Properties {
		withoutRules(&prop)
		s.Properties[name] = prop
	}
	if s.Items != nil && s.Items.Schema != nil {
		withoutRules(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutRules(s.AdditionalProperties.Schema)
	}
}
