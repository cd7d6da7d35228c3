package hostedcontrolplane

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/trouble"
)

func TestBlameProgress(t *testing.T) {
	obs := Observed{Troubles: []trouble.Trouble{{Component: "etcd", Reason: trouble.Unschedulable, Message: "pod etcd-0 fits on no node"}}}
	for name, tc := range map[string]struct {
		status metav1.ConditionStatus
		want   string
	}{
		"When a release is being rolled out the root cause should be its reason": {metav1.ConditionTrue, "Unschedulable pod etcd-0 fits on no node (Working towards 1.36.3)"},
		"When none is being rolled out it should stay as it is":                  {metav1.ConditionFalse, "FromClusterVersion Working towards 1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			conds := []metav1.Condition{{Type: hyperv1.ClusterVersionProgressing, Status: tc.status, Reason: hyperv1.FromClusterVersionReason, Message: "Working towards 1.36.3"}}
			obs.blameProgress(conds)
			NewWithT(t).Expect(conds[0].Reason + " " + conds[0].Message).To(Equal(tc.want))
		})
	}
}
