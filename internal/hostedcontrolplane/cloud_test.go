package hostedcontrolplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

func TestRemoving(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration, c metav1.Condition) metav1.Condition {
		c.LastTransitionTime = metav1.NewTime(now.Add(-ago))
		return c
	}
	const inside = hyperv1.CloudResourcesDestroyed
	for name, tc := range map[string]struct {
		change     func(*hyperv1.HostedControlPlane)
		inCloud    bool
		deleted    time.Duration // how long ago
		conditions []metav1.Condition
		want       string
	}{
		"When it begins it should wait for what is inside":                    {want: inside},
		"When nobody asked for it it should wait for nothing":                 {change: func(h *hyperv1.HostedControlPlane) { h.Annotations = nil }},
		"When the release is one of Kubernetes it should wait for nothing":    {change: func(h *hyperv1.HostedControlPlane) { h.Status.ControlPlaneVersion.Desired.Version = "1.36.1" }},
		"When no release was ever read it should wait for nothing":            {change: func(h *hyperv1.HostedControlPlane) { h.Status.ControlPlaneVersion.Desired.Version = "" }},
		"When it has no credentials for AWS it should wait for nothing":       {change: func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.AWS = &hyperv1.AWSPlatformSpec{} }},
		"When a payload is on AWS it should wait for what is inside":          {inCloud: true, change: onAWS("4.22.0"), want: inside},
		"When a Kubernetes release is on AWS it should wait for the group":    {inCloud: true, change: onAWS("1.36.1"), want: hyperv1.AWSDefaultSecurityGroupDeleted},
		"When something is left it should wait":                               {deleted: 5 * time.Minute, conditions: []metav1.Condition{at(4*time.Minute, conditions.False(inside, hyperv1.RemainingCloudResourcesReason, ""))}, want: inside},
		"When all is gone it should wait for nothing":                         {conditions: []metav1.Condition{at(0, conditions.True(inside, "x", ""))}},
		"When the removal was skipped it should wait for nothing":             {conditions: []metav1.Condition{at(0, conditions.False(inside, hyperv1.CloudResourcesCleanupSkippedReason, ""))}},
		"When the removal took too long it should wait for nothing":           {conditions: []metav1.Condition{at(0, conditions.False(inside, hyperv1.CloudResourcesDeletionTimedOutReason, ""))}},
		"When nobody says anything for eleven minutes it should wait no more": {deleted: removalPatience},
		"When the condition has changed meanwhile it should go on":            {deleted: removalPatience, conditions: []metav1.Condition{at(time.Minute, conditions.False(inside, "ErrorOccurred", ""))}, want: inside},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: &metav1.Time{Time: now.Add(-tc.deleted)}, Annotations: map[string]string{hyperv1.CleanupCloudResourcesAnnotation: "true"}}}
			hcp.Spec.Platform.Type = hyperv1.KubevirtPlatform
			hcp.Status.ControlPlaneVersion.Desired.Version = "4.22.0"
			hcp.Status.Conditions = tc.conditions
			if tc.change != nil {
				tc.change(hcp)
			}
			r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(now), InCloud: tc.inCloud}
			NewWithT(t).Expect(r.removing(hcp)).To(Equal(tc.want))
		})
	}
}

// onAWS moves a control plane there, with a release.
func onAWS(version string) func(*hyperv1.HostedControlPlane) {
	return func(h *hyperv1.HostedControlPlane) {
		h.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{}}
		h.Status.ControlPlaneVersion.Desired.Version = version
	}
}

func TestVersionOperatorPasses(t *testing.T) {
	w := newPayloadWorld(t)
	w.generateFeatureGates()
	NewWithT(t).Expect(w.settle(w.c)).To(Succeed())
	w.update(func(h *hyperv1.HostedControlPlane) {
		h.Annotations = map[string]string{hyperv1.CleanupCloudResourcesAnnotation: "true"}
	})
	NewWithT(t).Expect(w.c.Delete(t.Context(), w.read())).To(Succeed())
	pass := func(g Gomega) {
		_, err := w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
	}

	t.Run("When a payload's cluster with a cloud is deleted it should end the version operator, and wait for it", func(t *testing.T) {
		g, d := NewWithT(t), &appsv1.Deployment{}
		pass(g)
		g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: "cluster-version-operator"}, d)).To(Succeed())
		g.Expect(d.Spec.Replicas).To(HaveValue(BeZero()))
		pass(g)
		g.Expect(conditions.Get(w.read().Status.Conditions, hyperv1.CVOScaledDown)).To(BeNil())
	})
	t.Run("When the version operator has ended it should say so, once", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.play()).To(BeTrue())
		pass(g)
		g.Expect(conditions.IsTrue(w.read().Status.Conditions, hyperv1.CVOScaledDown)).To(BeTrue())
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error {
			_, err := w.pass(c)
			return err
		})
	})
}
