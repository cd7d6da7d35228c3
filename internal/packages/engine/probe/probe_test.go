package probe_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/probe"
	"hcp.internal/platform/internal/packages/packagestest"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func set(t testing.TB, selector *metav1.LabelSelector, probes ...v1alpha1.Probe) probe.Set {
	t.Helper()
	out, err := probe.Parse([]v1alpha1.ObjectSetProbe{{
		Selector: v1alpha1.ProbeSelector{Kind: &v1alpha1.PackageProbeKindSpec{Group: "apps", Kind: "Deployment"}, Selector: selector}, Probes: probes,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCheck(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, generation: 3, labels: {a: b}}\n"
	condition := v1alpha1.Probe{Condition: &v1alpha1.ProbeConditionSpec{Type: "Available", Status: "True"}}
	fields := v1alpha1.Probe{FieldsEqual: &v1alpha1.ProbeFieldsEqualSpec{FieldA: ".spec.replicas", FieldB: "status.updatedReplicas"}}
	cel := func(rule string) v1alpha1.Probe {
		return v1alpha1.Probe{CEL: &v1alpha1.ProbeCELSpec{Rule: rule, Message: "not so"}}
	}
	for name, tc := range map[string]struct {
		obj   string
		probe v1alpha1.Probe
		want  []string
	}{
		"When the condition is True it should pass":              {"status: {conditions: [{type: Available, status: 'True'}]}", condition, nil},
		"When there is no status it should say so":               {"", condition, []string{"missing .status.conditions"}},
		"When conditions are no list it should say so":           {"status: {conditions: x}", condition, []string{"malformed .status.conditions"}},
		"When a condition is no object it should say so":         {"status: {conditions: [x]}", condition, []string{"malformed .status.conditions"}},
		"When the condition is missing it should say so":         {"status: {conditions: []}", condition, []string{`missing .status.condition["Available"]`}},
		"When the condition is False it should say so":           {"status: {conditions: [{type: Available, status: 'False'}]}", condition, []string{`.status.condition["Available"] is False`}},
		"When the condition is of an old state it should say so": {"status: {conditions: [{type: Available, status: 'True', observedGeneration: 2}]}", condition, []string{`.status.condition["Available"] outdated`}},
		"When the status is of an old state it should say so":    {"status: {observedGeneration: 2, conditions: [{type: Available, status: 'True'}]}", condition, []string{".status outdated"}},
		"When fields are equal it should pass":                   {"spec: {replicas: 2}\nstatus: {updatedReplicas: 2}", fields, nil},
		"When fields differ it should show both":                 {"spec: {replicas: 2}\nstatus: {updatedReplicas: 1}", fields, []string{`".spec.replicas" != "status.updatedReplicas" expected: 2 got: 1`}},
		"When a field is missing it should say which":            {"spec: {replicas: 2}", fields, []string{`"status.updatedReplicas" missing`}},
		"When a rule is true it should pass":                     {"spec: {replicas: 2}", cel("self.spec.replicas == 2 && self.metadata.name.startsWith('w')"), nil},
		"When a rule is false it should give its message":        {"spec: {replicas: 2}", cel("self.spec.replicas == 3"), []string{"not so"}},
		"When a probe is of no known type it should pass":        {"", v1alpha1.Probe{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(set(t, nil, tc.probe).Check(t.Context(), object(t, head+tc.obj))).To(Equal(tc.want))
		})
	}
	t.Run("When a rule fails it should say why", func(t *testing.T) {
		NewWithT(t).Expect(set(t, nil, cel("self.nope == 1")).Check(t.Context(), object(t, head))).To(ConsistOf(ContainSubstring("CEL program failed: no such key: nope")))
	})
	t.Run("When an object is not selected it should pass", func(t *testing.T) {
		g := NewWithT(t)
		other := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "c"}}
		g.Expect(set(t, other, condition).Check(t.Context(), object(t, head))).To(BeEmpty())
		g.Expect(set(t, nil, condition).Check(t.Context(), object(t, strings.Replace(head, "Deployment", "StatefulSet", 1)))).To(BeEmpty())
	})
	t.Run("When a rule would take for ever it should end soon", func(t *testing.T) {
		g := NewWithT(t)
		big := object(t, head)
		var list []any
		for i := range 2000 {
			list = append(list, int64(i))
		}
		big.Object["list"] = list
		packagestest.ExpectCheap(t, func() {
			got := set(t, nil, cel("self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))")).Check(t.Context(), big)
			g.Expect(got).To(ConsistOf(HavePrefix("CEL program failed: ")))
		})
	})
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ rule, want string }{
		"When a rule gives no bool it should refuse it":    {"1 + 1", "availabilityProbes[0].probes[0]: cel expression must evaluate to a bool"},
		"When a rule does not compile it should say where": {"self.", "availabilityProbes[0].probes[0]: cel.rule: ERROR: <input>:1:6"},
		"When a rule is endless it should refuse it":       {strings.Repeat("true && ", 4000) + "true", "longer than 16384 bytes"},
		"When a rule is deep it should refuse it":          {strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000), "cel.rule: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := probe.Parse([]v1alpha1.ObjectSetProbe{{Probes: []v1alpha1.Probe{{CEL: &v1alpha1.ProbeCELSpec{Rule: tc.rule}}}}})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
