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
	g.Expect(earliest(nil, noon)).To(BeZero(), "When nothing is there it should say nothing")
	want = earliest(secrets, noon)
	g.Expect(want).To(BeTemporally(">", noon.Add(30*24*time.Hour)), "When certificates are new the first that matters should end in months")
	g.Expect(earliest(secrets, noon.Add(bootstrapValidity-time.Hour))).To(BeTemporally("~", noon.Add(bootstrapValidity), time.Hour),
		"When the credential of new machines was not replaced it should be that one")
	short := demo()
	short.Validity = 24 * time.Hour
	plan = PlanFor(short, Observed{}, source(noon))
	for _, s := range apply(Observed{}, plan).Secrets {
		if s.Name == SchedulerClient {
			late := noon.Add(23 * time.Hour)
			g.Expect(earliest(append(secrets, *s), noon)).To(Equal(want), "When one lives for a day only it should not matter that it ends soon")
			g.Expect(earliest(append(secrets, *s), late)).To(BeTemporally("~", noon.Add(24*time.Hour), time.Hour), "When nobody has replaced it in time it should be that one")
			foreign := s.DeepCopy()
			foreign.Annotations = nil
			g.Expect(earliest(append(secrets, *foreign), late)).To(Equal(want), "When it is not ours it should not matter")
			garbage := s.DeepCopy()
			garbage.Data[TLSCertKey] = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
			g.Expect(earliest(append(secrets, *garbage), late)).To(Equal(want), "When it can't be read it should not matter")
		}
	}
}

func TestEarliestAuthority(t *testing.T) {
	g := NewWithT(t)
	obs := apply(Observed{}, PlanFor(demo(), Observed{}, source(noon)))
	var secrets []corev1.Secret
	for _, s := range obs.Secrets {
		secrets = append(secrets, *s)
	}
	g.Expect(earliestAuthority(nil)).To(BeZero())
	g.Expect(earliestAuthority(secrets)).To(BeTemporally("==", noon.Add(caValidity)), "When authorities are new leaves should not count")
	foreign := obs.Secrets[RootCA].DeepCopy()
	foreign.Name = "theirs"
	foreign.Data = PlanFor(demo(), Observed{}, source(noon.AddDate(-5, 0, 0))).Authorities[1].Secret.Data
	g.Expect(earliestAuthority(append(secrets, *foreign))).To(BeTemporally("==", noon.Add(caValidity)), "When an authority is not ours it should not count")
	foreign.Name = RootCA
	g.Expect(earliestAuthority(append(secrets, *foreign))).To(BeTemporally("==", noon.AddDate(-5, 0, 0).Add(caValidity)), "When one ends earlier it should be that one")
}
