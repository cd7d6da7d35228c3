package nodepool

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestNewlyTrue(t *testing.T) {
	born := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	pool := func(version string, status corev1.ConditionStatus) *hyperv1.NodePool {
		np := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}}
		np.Status.Version = version
		np.Status.Conditions = []hyperv1.NodePoolCondition{
			{Type: hyperv1.NodePoolReadyConditionType, Status: status, LastTransitionTime: metav1.NewTime(born.Add(time.Minute))},
			{Type: hyperv1.NodePoolUpdatingVersionConditionType, Status: status},
		}
		return np
	}
	for name, tc := range map[string]struct {
		before, after *hyperv1.NodePool
		want          map[string]time.Duration
	}{
		"When a condition becomes True it should tell since when the pool is there": {pool("", "False"), pool("1.36.0", "True"), map[string]time.Duration{"Ready": time.Minute}},
		"When it was True before it should tell nothing":                            {pool("", "True"), pool("", "True"), map[string]time.Duration{}},
		"When it comes and goes later it should tell nothing":                       {pool("1.36.0", "False"), pool("1.36.0", "True"), nil},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(newlyTrue(tc.before, tc.after)).To(Equal(tc.want)) })
	}
}
