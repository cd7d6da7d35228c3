package get_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/get"
)

func TestVersionOf(t *testing.T) {
	past := ptr.To(metav1.NewTime(time.Unix(1_700_000_000, 0)))
	had := func(version string, state configv1.UpdateState, ended *metav1.Time) configv1.UpdateHistory {
		return configv1.UpdateHistory{Version: version, State: state, CompletionTime: ended}
	}
	for name, tc := range map[string]struct {
		desired string
		history []configv1.UpdateHistory
		want    string
	}{
		"When it runs what it should, it should show that":        {"1.36.3", []configv1.UpdateHistory{had("1.36.3", configv1.CompletedUpdate, past)}, "1.36.3"},
		"When it is being installed it should show where it goes": {"1.36.3", []configv1.UpdateHistory{had("1.36.3", configv1.PartialUpdate, nil)}, "→1.36.3"},
		"When an upgrade was given up for another it should not show that as what it runs": {"1.36.1",
			[]configv1.UpdateHistory{had("1.36.1", configv1.PartialUpdate, nil), had("1.36.0", configv1.PartialUpdate, past), had("1.35.4", configv1.CompletedUpdate, past)}, "1.35.4→1.36.1"},
	} {
		t.Run(name, func(t *testing.T) {
			hc := &hyperv1.HostedCluster{}
			hc.Status.Version = &hyperv1.ClusterVersionStatus{History: tc.history}
			hc.Status.Version.Desired.Version = tc.desired
			NewWithT(t).Expect(get.VersionOf(hc)).To(Equal(tc.want))
		})
	}
}
