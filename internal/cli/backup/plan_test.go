package backup

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/pause"
)

func TestBuildAwake(t *testing.T) {
	for name, to := range map[string]target{
		"When a cluster that sleeps by night is restored it should come up":      restored(),
		"When a cluster that sleeps by night is cloned the clone should come up": copied(),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := demo()
			s.objects.HostedCluster.Annotations = map[string]string{
				hyperv1.HibernateAnnotation: "2026-11-04T07:00:00Z", pause.ScheduleAnnotation: "sleep 0 20 * * *; wake 0 7 * * *", "owner": "blue",
			}
			m, err := build(s.objects, to)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.cluster.Annotations).NotTo(Or(HaveKey(hyperv1.HibernateAnnotation), HaveKey(pause.ScheduleAnnotation)))
			g.Expect(m.cluster.Annotations).To(HaveKeyWithValue("owner", "blue"))
			g.Expect(s.objects.HostedCluster.Annotations).To(HaveLen(3), "the backup should stay as it is")
		})
	}
}
