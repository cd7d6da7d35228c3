package removal_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/removal"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ago is a time before noon.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func TestOf(t *testing.T) {
	condition := func(changed time.Duration, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: hyperv1.CloudResourcesDestroyed, Status: status, Reason: reason, LastTransitionTime: ago(changed)}}
	}
	for name, tc := range map[string]struct {
		deleted    time.Duration // how long ago; 0: not at all
		conditions []metav1.Condition
		want       removal.Progress
	}{
		"When nothing is deleted it should be zero": {conditions: condition(time.Minute, metav1.ConditionTrue, "x")},
		"When nobody has said anything yet it should count from the deletion": {deleted: time.Minute,
			want: removal.Progress{Waited: time.Minute}},
		"When something is left it should count from when that was said": {deleted: 5 * time.Minute,
			conditions: condition(4*time.Minute, metav1.ConditionFalse, hyperv1.RemainingCloudResourcesReason), want: removal.Progress{Waited: 4 * time.Minute}},
		"When the condition is older than the deletion it should count from the deletion": {deleted: time.Minute,
			conditions: condition(time.Hour, metav1.ConditionFalse, "ErrorOccurred"), want: removal.Progress{Waited: time.Minute}},
		"When the condition has no time it should count from the deletion": {deleted: time.Minute,
			conditions: []metav1.Condition{{Type: hyperv1.CloudResourcesDestroyed, Status: metav1.ConditionFalse}}, want: removal.Progress{Waited: time.Minute}},
		"When nothing is known it should not be over": {deleted: time.Minute,
			conditions: condition(time.Second, metav1.ConditionUnknown, "x"), want: removal.Progress{Waited: time.Second}},
		"When all is gone it should be over": {deleted: 5 * time.Minute,
			conditions: condition(time.Minute, metav1.ConditionTrue, "x"), want: removal.Progress{Over: true, Waited: time.Minute}},
		"When it was skipped it should be over": {deleted: 5 * time.Minute,
			conditions: condition(5*time.Minute, metav1.ConditionFalse, hyperv1.CloudResourcesCleanupSkippedReason), want: removal.Progress{Over: true, Waited: 5 * time.Minute}},
		"When it took too long it should be over": {deleted: time.Hour,
			conditions: condition(time.Hour, metav1.ConditionFalse, hyperv1.CloudResourcesDeletionTimedOutReason), want: removal.Progress{Over: true, Waited: time.Hour}},
		"When another condition is true it should not be over": {deleted: time.Minute,
			conditions: []metav1.Condition{{Type: hyperv1.AWSDefaultSecurityGroupDeleted, Status: metav1.ConditionTrue, LastTransitionTime: ago(0)}}, want: removal.Progress{Waited: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			if tc.deleted != 0 {
				hcp.DeletionTimestamp = &metav1.Time{Time: noon.Add(-tc.deleted)}
			}
			hcp.Status.Conditions = tc.conditions
			NewWithT(t).Expect(removal.Of(hcp, noon)).To(Equal(tc.want))
		})
	}
}

func TestStuck(t *testing.T) {
	for name, tc := range map[string]struct {
		deleted, changed time.Duration // how long ago
		want             bool
	}{
		"When the deletion has just begun it should wait":              {deleted: time.Minute},
		"When nothing has come of it for ten minutes it should end":    {deleted: removal.Limit, want: true},
		"When the condition has changed meanwhile it should go on":     {deleted: removal.Limit, changed: time.Minute},
		"When the condition has not changed for long it should end":    {deleted: 3 * removal.Limit, changed: removal.Limit, want: true},
		"When the condition is older than the deletion it should wait": {deleted: time.Minute, changed: removal.Limit},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.DeletionTimestamp = &metav1.Time{Time: noon.Add(-tc.deleted)}
			if tc.changed != 0 {
				hcp.Status.Conditions = []metav1.Condition{{Type: hyperv1.CloudResourcesDestroyed, LastTransitionTime: ago(tc.changed)}}
			}
			NewWithT(t).Expect(removal.Of(hcp, noon).Stuck()).To(Equal(tc.want))
		})
	}
}

func TestAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		deleted bool
		value   string
		want    bool
	}{
		"When it is deleted and asked it should take along what it has":      {deleted: true, value: "true", want: true},
		"When it is not deleted it should keep what it has":                  {value: "true"},
		"When nobody asked it should leave what it has":                      {deleted: true},
		"When the annotation says anything else it should leave it, as well": {deleted: true, value: "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Annotations = map[string]string{hyperv1.CleanupCloudResourcesAnnotation: tc.value}
			if tc.deleted {
				hcp.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			NewWithT(t).Expect(removal.Asked(hcp)).To(Equal(tc.want))
		})
	}
}

func TestEarly(t *testing.T) {
	down := []metav1.Condition{{Type: hyperv1.CVOScaledDown, Status: metav1.ConditionTrue}}
	for name, tc := range map[string]struct {
		deleted    time.Duration // how long ago; 0: not at all
		conditions []metav1.Condition
		want       bool
	}{
		"When nothing is deleted nothing should be early":                               {},
		"When it isn't known that the version operator has ended it should be early":    {deleted: time.Second, want: true},
		"When the version operator has ended it should begin":                           {deleted: time.Second, conditions: down},
		"When nobody says that it has ended for two minutes it should begin without it": {deleted: removal.EarlyFor},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Status.Conditions = tc.conditions
			if tc.deleted > 0 {
				at := ago(tc.deleted)
				hcp.DeletionTimestamp = &at
			}
			NewWithT(t).Expect(removal.Early(hcp, noon)).To(Equal(tc.want))
		})
	}
}
