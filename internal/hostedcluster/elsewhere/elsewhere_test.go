package elsewhere

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestElsewhere(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	known := func(status metav1.ConditionStatus) elsewhere {
		return elsewhere{at: now, digest: "a", condition: &metav1.Condition{Status: status}}
	}
	for name, tc := range map[string]struct {
		of     elsewhere
		after  time.Duration
		digest string
		want   time.Duration
	}{
		"When nothing is known another cluster should be asked":                     {elsewhere{}, 0, "a", 0},
		"When all was well it should not be asked for five minutes":                 {known(metav1.ConditionTrue), time.Minute, "a", 4 * time.Minute},
		"When that is long ago it should be asked":                                  {known(metav1.ConditionTrue), time.Hour, "a", 0},
		"When something was wrong it should be asked again after half a minute":     {known(metav1.ConditionFalse), 10 * time.Second, "a", 20 * time.Second},
		"When the policy or the credentials became others it should be asked again": {known(metav1.ConditionTrue), time.Second, "b", 0},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.of.left(now.Add(tc.after), tc.digest)).To(Equal(tc.want))
		})
	}
}
