package install

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// allAlerts are the alerts that any option brings.
func allAlerts(t *testing.T) []map[string]any {
	t.Helper()
	o := resources(func(o *Options) {
		o.Monitoring.Objects, o.Monitoring.SLOAlerts, o.PackageOperator, o.capi = true, true, true, &capiChoice{Private: true}
	})
	var found []map[string]any
	for _, obj := range append(monitoringObjects(o), capiMonitoring(o)...) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || u.GetKind() != "PrometheusRule" {
			continue
		}
		groups, _, _ := unstructured.NestedSlice(u.Object, "spec", "groups")
		for _, group := range groups {
			for _, r := range group.(map[string]any)["rules"].([]any) {
				if rule := r.(map[string]any); rule["alert"] != nil {
					found = append(found, rule)
				}
			}
		}
	}
	return found
}

func TestAlerts(t *testing.T) {
	g := NewWithT(t)
	runbooks, err := os.ReadFile("../../../docs/alerts.md")
	g.Expect(err).NotTo(HaveOccurred())
	alerts := allAlerts(t)
	g.Expect(len(alerts)).To(BeNumerically(">=", 10))
	for _, a := range alerts {
		name := a["alert"].(string)
		g.Expect(string(runbooks)).To(ContainSubstring("\n## "+name+"\n"), "When "+name+" fires there should be a section that says what to do")
		g.Expect(a["annotations"]).To(And(HaveKey("summary"), HaveKey("description"), HaveKey("runbook")), name)
		g.Expect(a["labels"]).To(HaveKeyWithValue("severity", BeElementOf(warning, critical)), name)
		g.Expect(strings.Count(a["expr"].(string), "(")).To(Equal(strings.Count(a["expr"].(string), ")")), name)
	}
}
