package status

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/rollup"
)

// rollups are states of a HostedCluster, and what kstatus is to make of them. tools/gitops asks the real library about what this test records.
var rollups = map[string]struct {
	edit func(*hyperv1.HostedCluster)
	want string // Current, InProgress or Failed
}{
	"settled":                 {func(*hyperv1.HostedCluster) {}, "Current"},
	"comes-up":                {said(hyperv1.HostedClusterAvailable, metav1.ConditionFalse, "EtcdWaitingForQuorum"), "InProgress"},
	"nobody-has-said":         {said(hyperv1.HostedClusterAvailable, metav1.ConditionUnknown, "StatusUnknown"), "InProgress"},
	"lost":                    {both(wasUp, said(hyperv1.HostedClusterAvailable, metav1.ConditionFalse, "EtcdWaitingForQuorum")), "Failed"},
	"lost-while-it-rolls-out": {both(wasUp, both(said(hyperv1.HostedClusterAvailable, metav1.ConditionFalse, "X"), said(hyperv1.HostedClusterProgressing, metav1.ConditionTrue, "X"))), "Failed"},
	"rolls-out":               {both(wasUp, said(hyperv1.HostedClusterProgressing, metav1.ConditionTrue, hyperv1.ProgressingReason)), "InProgress"},
	"blocked":                 {said(hyperv1.HostedClusterProgressing, metav1.ConditionFalse, hyperv1.BlockedReason), "Failed"},
	"invalid":                 {said(hyperv1.ValidHostedClusterConfiguration, metav1.ConditionFalse, "InvalidConfiguration"), "Failed"},
	"release-unreadable":      {said(hyperv1.ValidReleaseImage, metav1.ConditionFalse, "InvalidImage"), "Failed"},
	"degraded":                {both(wasUp, said(hyperv1.HostedClusterDegraded, metav1.ConditionTrue, "UnavailableReplicas")), "Failed"},
	"paused":                  {both(wasUp, said(hyperv1.ReconciliationActive, metav1.ConditionFalse, hyperv1.ReconciliationPausedReason)), "InProgress"},
	"asleep":                  {both(wasUp, both(said(hyperv1.HostedClusterAvailable, metav1.ConditionFalse, hyperv1.HostedClusterHibernated), said(hyperv1.HostedClusterHibernated, metav1.ConditionTrue, hyperv1.AsleepReason))), "Current"},
	"wakes":                   {both(wasUp, both(said(hyperv1.HostedClusterAvailable, metav1.ConditionFalse, "X"), said(hyperv1.HostedClusterHibernated, metav1.ConditionFalse, hyperv1.WakingReason))), "InProgress"},
	"is-deleted":              {func(hc *hyperv1.HostedCluster) { now := metav1.NewTime(statetest.Noon); hc.DeletionTimestamp = &now }, "Terminating"},
}

func said(conditionType string, status metav1.ConditionStatus, reason string) func(*hyperv1.HostedCluster) {
	return func(hc *hyperv1.HostedCluster) {
		conditions.Set(&hc.Status.Conditions, statetest.Noon, conditions.New(conditionType, status, reason, "what "+conditionType+" says"))
	}
}

func wasUp(hc *hyperv1.HostedCluster) { hc.Annotations[hyperv1.HasBeenAvailableAnnotation] = "true" }

func both(a, b func(*hyperv1.HostedCluster)) func(*hyperv1.HostedCluster) {
	return func(hc *hyperv1.HostedCluster) { a(hc); b(hc) }
}

func TestRollUp(t *testing.T) {
	dir := filepath.Join("testdata", "rollup")
	for name, tc := range rollups {
		t.Run("When a hosted cluster is in state "+name+" kstatus should find "+tc.want, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{TypeMeta: metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster"}}
			hc.Namespace, hc.Name, hc.Generation, hc.Annotations = "clusters", "demo", 3, map[string]string{}
			conditions.Set(&hc.Status.Conditions, statetest.Noon, conditions.True(hyperv1.HostedClusterAvailable, hyperv1.AsExpectedReason, ""), conditions.False(hyperv1.HostedClusterProgressing, hyperv1.AsExpectedReason, ""))
			rollup.Set(&hc.Status.Conditions, statetest.Noon, 2, conditions.Get(hc.Status.Conditions, hyperv1.HostedClusterAvailable), nil) // of a state before
			tc.edit(hc)
			RollUp(hc, statetest.Noon)
			g.Expect(conditions.IsTrue(hc.Status.Conditions, rollup.Stalled)).To(Equal(tc.want == "Failed"))
			g.Expect(conditions.IsTrue(hc.Status.Conditions, rollup.Reconciling)).To(Equal(tc.want == "InProgress"))
			if tc.want == "Current" {
				g.Expect(conditions.Get(hc.Status.Conditions, rollup.Stalled)).To(BeNil())
				g.Expect(conditions.Get(hc.Status.Conditions, rollup.Reconciling)).To(BeNil())
			}
			again := hc.DeepCopy()
			RollUp(again, statetest.Noon.AddDate(0, 0, 1))
			g.Expect(again).To(Equal(hc), "a second pass should change nothing")
			raw, err := yaml.Marshal(map[string]any{"apiVersion": hc.APIVersion, "kind": hc.Kind, "metadata": hc.ObjectMeta, "status": map[string]any{"conditions": hc.Status.Conditions}})
			g.Expect(err).NotTo(HaveOccurred())
			file := filepath.Join(dir, tc.want+"_"+name+".yaml")
			if os.Getenv("UPDATE") == "true" {
				g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
				g.Expect(os.WriteFile(file, raw, 0o644)).To(Succeed())
			}
			recorded, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.TrimSpace(string(recorded))).To(Equal(strings.TrimSpace(string(raw))), "UPDATE=true go test ./internal/hostedcluster -run TestRollUp")
		})
	}
	t.Run("When states are recorded none should be left of before", func(t *testing.T) {
		g := NewWithT(t)
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).To(HaveLen(len(rollups)))
	})
}
