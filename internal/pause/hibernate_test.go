package pause

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestHibernation(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		annotation, reason string // as they are on the HostedCluster; empty: absent
		deleted            bool
		workersOff, asleep bool
	}{
		"When nobody asks for it it should be awake":                             {},
		"When it is asked to sleep it should have no workers at once":            {annotation: "true", workersOff: true},
		"When it sleeps until a time to come it should have no workers":          {annotation: "2026-11-01T13:00:00Z", reason: hyperv1.AsleepReason, workersOff: true, asleep: true},
		"When the time has passed workers should wait for the control plane":     {annotation: "2026-11-01T11:00:00Z", reason: hyperv1.WakingReason, workersOff: true},
		"When it goes to sleep nobody should expect it to serve":                 {annotation: "true", reason: hyperv1.WorkersStoppingReason, workersOff: true, asleep: true},
		"When the annotation can't be read it should be awake":                   {annotation: "tonight", reason: hyperv1.InvalidHibernateValueReason},
		"When it is being deleted workers should be as deletion wants them":      {annotation: "true", deleted: true},
		"When it wakes it should be expected to serve, and not have workers yet": {reason: hyperv1.WakingReason, workersOff: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{}
			if c.annotation != "" {
				hc.Annotations = map[string]string{hyperv1.HibernateAnnotation: c.annotation}
			}
			if c.reason != "" {
				hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.HostedClusterHibernated, Reason: c.reason}}
			}
			if c.deleted {
				hc.DeletionTimestamp = &metav1.Time{Time: now}
			}
			g.Expect(WorkersOff(hc, now)).To(Equal(c.workersOff))
			g.Expect(Asleep(hc.Status.Conditions)).To(Equal(c.asleep))
		})
	}
}
