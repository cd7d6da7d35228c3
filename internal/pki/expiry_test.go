package pki

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestEarliest(t *testing.T) {
	g := NewWithT(t)
	plan := PlanFor(demo(), Observed{}, source(noon))
	var secrets []corev1.Secret
	var want time.Time
	for _, s := range apply(Observed{}, plan).Secrets {
		secrets = append(secrets, *s)
	}
	g.Expect(earliest(nil)).To(BeZero(), "When nothing is there it should say nothing")
	want = earliest(secrets)
	g.Expect(want).To(BeTemporally(">", noon.Add(30*24*time.Hour)), "When certificates are new the first should end in months")
	short := demo()
	short.Validity = 24 * time.Hour
	plan = PlanFor(short, Observed{}, source(noon))
	for _, s := range apply(Observed{}, plan).Secrets {
		if s.Name == SchedulerClient {
			g.Expect(earliest(append(secrets, *s))).To(BeTemporally("~", noon.Add(24*time.Hour), time.Hour), "When one ends sooner it should be that one")
			foreign := s.DeepCopy()
			foreign.Annotations = nil
			g.Expect(earliest(append(secrets, *foreign))).To(Equal(want), "When it is not ours it should not matter")
			garbage := s.DeepCopy()
			garbage.Data[TLSCertKey] = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
			g.Expect(earliest(append(secrets, *garbage))).To(Equal(want), "When it can't be read it should not matter")
		}
	}
}
