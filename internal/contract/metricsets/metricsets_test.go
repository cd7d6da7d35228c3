package metricsets

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestKeep(t *testing.T) {
	for name, tc := range map[string]struct {
		component, set, metric string
		want                   bool
	}{
		"When the set is small it should keep what is listed":      {"kube-apiserver", "Telemetry", "apiserver_request_total", true},
		"When the set is small it should keep nothing else":        {"kube-apiserver", "Telemetry", "go_threads", false},
		"When nothing is kept of a component it should be nothing": {"kube-scheduler", "Telemetry", "go_threads", false},
		"When the set is large it should keep everything":          {"kube-apiserver", "All", "go_threads", true},
		"When a component has no list it should keep everything":   {"router", "Telemetry", "go_threads", true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Keep(tc.component, tc.set)(tc.metric)).To(Equal(tc.want))
		})
	}
}
