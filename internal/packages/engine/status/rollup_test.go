package status

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/rollup"
)

// rollups are states of packages, and what kstatus is to make of them. tools/gitops asks the real library about what this test records.
var rollups = map[string]struct {
	says []metav1.Condition
	want string // Current, InProgress or Failed
}{
	"settled":       {[]metav1.Condition{says(v1alpha1.ConditionUnpacked, yes), says(v1alpha1.ConditionAvailable, yes), says(v1alpha1.ConditionProgressing, no)}, "Current"},
	"rolls-out":     {[]metav1.Condition{says(v1alpha1.ConditionAvailable, yes), says(v1alpha1.ConditionProgressing, yes)}, "InProgress"},
	"comes-up":      {[]metav1.Condition{says(v1alpha1.ConditionUnpacked, yes), says(v1alpha1.ConditionAvailable, no), says(v1alpha1.ConditionProgressing, yes)}, "InProgress"},
	"was-read":      {[]metav1.Condition{says(v1alpha1.ConditionUnpacked, yes)}, "InProgress"},
	"of-before":     {[]metav1.Condition{says(v1alpha1.ConditionUnpacked, yes), before(v1alpha1.ConditionAvailable, no), before(v1alpha1.ConditionProgressing, no)}, "InProgress"},
	"paused":        {[]metav1.Condition{says(v1alpha1.ConditionPaused, yes), says(v1alpha1.ConditionAvailable, no), says(v1alpha1.ConditionProgressing, no)}, "InProgress"},
	"removal-held":  {[]metav1.Condition{says(v1alpha1.ConditionRemovalHeld, yes), says(v1alpha1.ConditionAvailable, yes), says(v1alpha1.ConditionProgressing, no)}, "InProgress"},
	"invalid":       {[]metav1.Condition{says(v1alpha1.ConditionInvalid, yes), says(v1alpha1.ConditionAvailable, yes), says(v1alpha1.ConditionProgressing, yes)}, "Failed"},
	"unreadable":    {[]metav1.Condition{says(v1alpha1.ConditionUnpacked, no), says(v1alpha1.ConditionAvailable, yes), says(v1alpha1.ConditionProgressing, no)}, "Failed"},
	"down":          {[]metav1.Condition{says(v1alpha1.ConditionUnpacked, yes), says(v1alpha1.ConditionAvailable, no), says(v1alpha1.ConditionProgressing, no)}, "Failed"},
	"came-back":     {[]metav1.Condition{says(v1alpha1.ConditionAvailable, yes), {Type: v1alpha1.ConditionProgressing, Status: yes, Reason: "NotAllPackagesProgressed", Message: "1/2 packages progressed. Failed and returned: clusters-a/addon.", ObservedGeneration: 3}}, "Failed"},
	"nothing-known": {nil, "Current"},
}

const yes, no = metav1.ConditionTrue, metav1.ConditionFalse

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func says(conditionType string, status metav1.ConditionStatus) metav1.Condition {
	c := conditions.New(conditionType, status, "Reason", "what "+conditionType+" says")
	c.ObservedGeneration = 3
	return c
}

func before(conditionType string, status metav1.ConditionStatus) metav1.Condition {
	c := says(conditionType, status)
	c.ObservedGeneration = 2
	return c
}

func TestRollUp(t *testing.T) {
	dir := filepath.Join("testdata", "rollup")
	for name, tc := range rollups {
		t.Run("When a package is in state "+name+" kstatus should find "+tc.want, func(t *testing.T) {
			g := NewWithT(t)
			var list []metav1.Condition
			conditions.Set(&list, noon, tc.says...)
			settled := append([]metav1.Condition(nil), list...)
			stale := says(v1alpha1.ConditionAvailable, no)
			rollup.Set(&list, noon, 2, nil, &stale) // of a state before
			RollUp(&list, noon, 3)
			g.Expect(conditions.IsTrue(list, rollup.Stalled)).To(Equal(tc.want == "Failed"))
			g.Expect(conditions.IsTrue(list, rollup.Reconciling)).To(Equal(tc.want == "InProgress"))
			if tc.want == "Current" {
				g.Expect(list).To(ConsistOf(settled), "a settled package should have no condition more")
			}
			again := append([]metav1.Condition(nil), list...)
			RollUp(&again, noon.AddDate(0, 0, 1), 3)
			g.Expect(again).To(ConsistOf(list), "a second pass should change nothing")
			raw, err := yaml.Marshal(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Package",
				"metadata": map[string]any{"namespace": "clusters-demo", "name": "addon", "generation": 3}, "status": map[string]any{"conditions": list}})
			g.Expect(err).NotTo(HaveOccurred())
			file := filepath.Join(dir, tc.want+"_"+name+".yaml")
			if os.Getenv("UPDATE") == "true" {
				g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
				g.Expect(os.WriteFile(file, raw, 0o644)).To(Succeed())
			}
			recorded, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.TrimSpace(string(recorded))).To(Equal(strings.TrimSpace(string(raw))), "UPDATE=true go test ./internal/packages/engine/status -run TestRollUp")
		})
	}
	t.Run("When states are recorded none should be left of before", func(t *testing.T) {
		g := NewWithT(t)
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).To(HaveLen(len(rollups)))
	})
}
