package hcpstatus

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

func decoded(t *testing.T, raw string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const rolledOut = `{
  "desired": {"version": "4.22.1", "image": "r@sha256:2", "channels": ["stable-4.22", "stable-4.22"]}, "observedGeneration": 3,
  "history": [
    {"state": "Partial", "startedTime": "2026-11-21T12:00:00Z", "completionTime": null, "version": "4.22.1", "image": "r@sha256:2", "verified": true},
    {"state": "Completed", "startedTime": "2026-11-20T12:00:00Z", "completionTime": "2026-11-20T13:00:00Z", "version": "4.22.0", "image": "r@sha256:1", "verified": true}],
  "availableUpdates": null,
  "conditions": [
    {"type": "Available", "status": "True", "reason": "", "message": "Done applying 4.22.0", "lastTransitionTime": "2026-11-20T13:00:00Z"},
    {"type": "Failing", "status": "True", "reason": "ClusterOperatorDegraded", "message": "Cluster operator ingress is degraded", "lastTransitionTime": "2026-11-20T13:00:00Z"},
    {"type": "Progressing", "status": "Perhaps", "reason": "no reason", "message": "x\u001by", "lastTransitionTime": "2026-11-20T13:00:00Z"}]}`

func TestReport(t *testing.T) {
	status := func(r Report) *hyperv1.HostedControlPlaneStatus {
		s := &hyperv1.HostedControlPlaneStatus{}
		tell(s, r, func(c ...metav1.Condition) { conditions.Set(&s.Conditions, time.Now(), c...) })
		return s
	}
	t.Run("When a rollout is under way it should tell what was completed before", func(t *testing.T) {
		g := NewWithT(t)
		s := status(reportOf(decoded(t, rolledOut), 7))
		g.Expect(s.VersionStatus.Desired.Version).To(Equal("4.22.1"))
		g.Expect(s.VersionStatus.Desired.Channels).To(Equal([]string{"stable-4.22"}))
		g.Expect(s.VersionStatus.History).To(HaveLen(2))
		g.Expect(s.VersionStatus.AvailableUpdates).To(BeNil())
		g.Expect(s.Version).To(Equal("4.22.0"))          //nolint:staticcheck // old readers
		g.Expect(s.ReleaseImage).To(Equal("r@sha256:1")) //nolint:staticcheck // old readers
	})
	t.Run("When the ClusterVersion has conditions it should mirror them, and the reverse of Failing", func(t *testing.T) {
		g := NewWithT(t)
		s := status(reportOf(decoded(t, rolledOut), 7))
		get := func(kind string) metav1.Condition { return *conditions.Get(s.Conditions, kind) }
		g.Expect(get(hyperv1.ClusterVersionAvailable).Reason).To(Equal(hyperv1.FromClusterVersionReason))
		g.Expect(get(hyperv1.ClusterVersionFailing).Message).To(ContainSubstring("ingress"))
		g.Expect(get(hyperv1.ClusterVersionSucceeding).Status).To(Equal(metav1.ConditionFalse))
		g.Expect(get(hyperv1.ClusterVersionSucceeding).Reason).To(Equal("ClusterOperatorDegraded"))
		g.Expect(get(hyperv1.ClusterVersionProgressing).Status).To(Equal(metav1.ConditionUnknown))
		g.Expect(get(hyperv1.ClusterVersionProgressing).Reason).To(Equal(hyperv1.FromClusterVersionReason))
		g.Expect(get(hyperv1.ClusterVersionProgressing).Message).To(Equal("x y"))
		g.Expect(get(hyperv1.ClusterVersionUpgradeable).Status).To(Equal(metav1.ConditionTrue))
		g.Expect(get(hyperv1.ClusterVersionReleaseAccepted).Reason).To(Equal(hyperv1.StatusUnknownReason))
	})
	t.Run("When there is no ClusterVersion it should leave the version and say that it doesn't know", func(t *testing.T) {
		g := NewWithT(t)
		s := status(reportOf(nil, 7))
		g.Expect(s.VersionStatus).To(BeNil())
		g.Expect(conditions.Get(s.Conditions, hyperv1.ClusterVersionSucceeding).Status).To(Equal(metav1.ConditionUnknown))
	})
	t.Run("When it says nothing new the report should be the same", func(t *testing.T) {
		NewWithT(t).Expect(reportOf(decoded(t, rolledOut), 7)).To(Equal(reportOf(decoded(t, rolledOut), 7)))
	})
}

func TestHostile(t *testing.T) {
	t.Run("When the ClusterVersion is huge the report should be bounded", func(t *testing.T) {
		g := NewWithT(t)
		long := strings.Repeat("ä", 2<<10)
		entry := map[string]any{"state": "Completed", "startedTime": "2026-11-20T12:00:00Z", "completionTime": "2026-11-20T13:00:00Z", "version": long, "image": long, "acceptedRisks": long}
		rule := map[string]any{"type": "PromQL", "promql": map[string]any{"promql": long}}
		var history, updates, conditional, conds, rules, risks []any
		for i := range 2000 {
			history, rules = append(history, entry), append(rules, rule)
			updates = append(updates, map[string]any{"version": long, "image": long, "channels": []any{long, fmt.Sprint(i)}})
			conds = append(conds, map[string]any{"type": "Available", "status": "True", "reason": long, "message": long})
		}
		for i := range 40 {
			risks = append(risks, map[string]any{"name": fmt.Sprint("R", i), "url": "https://" + long, "message": long, "matchingRules": rules[:20]})
		}
		for range 3 {
			conditional = append(conditional, map[string]any{"release": updates[0], "risks": risks, "conditions": conds[:20]})
		}
		report := reportOf(map[string]any{"desired": map[string]any{"version": "4.22.0", "image": long}, "history": history, "availableUpdates": updates,
			"conditionalUpdates": conditional, "conditions": conds}, 1)
		raw, err := json.Marshal(report)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(raw)).To(BeNumerically("<", 512<<10), "an API server takes no more than 1.5 MiB of the whole object")
		g.Expect(report.Version.History).NotTo(BeEmpty())
	})
	t.Run("When everything in it is of another type it should tell nothing", func(t *testing.T) {
		g := NewWithT(t)
		for _, raw := range []string{`{"desired": [], "history": {}, "conditions": "x"}`, `{"desired": {"version": 1}, "history": [1, "x", {"state": 2}], "conditions": [[], {"type": {}}], "availableUpdates": {"a": 1}}`} {
			report := reportOf(decoded(t, raw), 1)
			g.Expect(report.Version).To(BeNil())
			g.Expect(report.Conditions).To(HaveLen(len(mirrored) + 1))
		}
		g.Expect(authenticationOf(decoded(t, `{"oidcClients": [1, {"componentName": 2}], "integratedOAuthMetadata": "x"}`))).To(Equal(configv1.AuthenticationStatus{}))
	})
}
