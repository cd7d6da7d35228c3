package hostedcluster

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/kube/conditions"
)

type told []string

func (l *told) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	*l = append(*l, fmt.Sprintf("%s %s %s: %s", eventType, reason, action, fmt.Sprintf(note, args...)))
}

func TestTellChanges(t *testing.T) {
	version := func(state configv1.UpdateState, image, version string) *hyperv1.ClusterVersionStatus {
		entry := configv1.UpdateHistory{State: state, Image: image, Version: version, StartedTime: metav1.NewTime(statetest.Noon)}
		if state == configv1.CompletedUpdate {
			entry.CompletionTime = ptr.To(metav1.NewTime(statetest.Noon.Add(90 * time.Second)))
		}
		return &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{entry}}
	}
	with := func(version *hyperv1.ClusterVersionStatus, list ...metav1.Condition) *hyperv1.HostedCluster {
		hc := &hyperv1.HostedCluster{}
		hc.Status.Version = version
		conditions.Set(&hc.Status.Conditions, statetest.Noon, list...)
		return hc
	}
	for name, tc := range map[string]struct {
		before, after *hyperv1.HostedCluster
		want          told
	}{
		"When a release is taken up it should tell": {with(nil), with(version(configv1.PartialUpdate, "r:1", "1.36.3")),
			told{"Normal RolloutStarted RollOut: Rolling out release 1.36.3"}},
		"When the control plane takes it over by its digest it should not tell again": {
			with(version(configv1.PartialUpdate, "r:1", "1.36.3")), with(version(configv1.PartialUpdate, "r@sha256:1", "1.36.3")), nil,
		},
		"When a release is rolled out it should tell how long it took": {with(version(configv1.PartialUpdate, "r:1", "1.36.3")), with(version(configv1.CompletedUpdate, "r:1", "1.36.3")),
			told{"Normal RolloutCompleted RollOut: Release 1.36.3 is rolled out after 1m30s"}},
		"When the version is not known it should name the image": {with(nil), with(version(configv1.PartialUpdate, "r:1", "")),
			told{"Normal RolloutStarted RollOut: Rolling out release r:1"}},
		"When nothing changes it should tell nothing": {with(version(configv1.CompletedUpdate, "r:1", "1.36.3")), with(version(configv1.CompletedUpdate, "r:1", "1.36.3")), nil},
		"When the configuration is invalid it should warn": {
			with(nil), with(nil, conditions.False(hyperv1.ValidHostedClusterConfiguration, hyperv1.InvalidConfigurationReason, "spec.x is wrong")),
			told{"Warning InvalidConfiguration Validate: spec.x is wrong"},
		},
		"When it is paused it should tell": {with(nil), with(nil, status.ReconciliationActive(ptr.To("true"), statetest.Noon)),
			told{"Normal ReconciliationPaused Pause: Reconciliation paused until field removed"}},
		"When it goes on it should tell": {with(nil, status.ReconciliationActive(ptr.To("true"), statetest.Noon)), with(nil, status.ReconciliationActive(nil, statetest.Noon)),
			told{"Normal ReconciliationResumed Pause: Reconciliation active on resource"}},
		"When pausedUntil is neither it should warn": {with(nil), with(nil, status.ReconciliationActive(ptr.To("soon"), statetest.Noon)),
			told{`Warning InvalidPausedUntilValue Pause: spec.pausedUntil "soon" is neither a time nor true or false, so the cluster is not paused: write it like 2027-01-31T12:00:00Z`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got told
			status.Tell(&got, tc.before, tc.after)
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestTellSlowDeletion(t *testing.T) {
	g := NewWithT(t)
	var got told
	clk := clocktesting.NewFakePassiveClock(statetest.Noon.Add(deletionSlow - time.Second))
	r := &Reconciler{Clock: clk, Events: &got}
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{UID: "u", DeletionTimestamp: ptr.To(metav1.NewTime(statetest.Noon))}}
	waiting := []string{"NodePool demo", "Cluster demo-x7k2p"}
	r.tellSlowDeletion(hc, waiting)
	g.Expect(got).To(BeEmpty(), "it has just begun")
	clk.SetTime(statetest.Noon.Add(deletionSlow))
	r.tellSlowDeletion(hc, waiting)
	g.Expect(got).To(Equal(told{"Warning DeletionBlocked Delete: After 3m0s, waiting for NodePool demo, Cluster demo-x7k2p"}))
	clk.SetTime(statetest.Noon.Add(deletionSlow + deletionAgain - time.Second))
	r.tellSlowDeletion(hc, waiting)
	g.Expect(got).To(HaveLen(1), "it was told lately")
	clk.SetTime(statetest.Noon.Add(deletionSlow + deletionAgain))
	r.tellSlowDeletion(hc, waiting)
	g.Expect(got).To(HaveLen(2))
}
