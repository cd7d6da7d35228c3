package pki

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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

func TestExpiry(t *testing.T) {
	t.Run("When several previous authorities are trusted it should tell of the first to end, in one series", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		a.replace()
		a.replace()
		objs := fake.NewClientBuilder()
		for _, s := range listed(a.obs) {
			objs = objs.WithObjects(&s)
		}
		registry := prometheus.NewPedanticRegistry()
		g.Expect(registry.Register(NewExpiry(objs.Build(), a.spec.Namespace))).To(Succeed())
		families, err := registry.Gather()
		g.Expect(err).NotTo(HaveOccurred(), "a series twice makes all metrics unreadable")
		previous := 0
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "generation" && l.GetValue() == string(Previous) {
						previous++
						g.Expect(m.GetGauge().GetValue()).To(BeNumerically("~", noon.Add(caValidity).Unix(), 1))
					}
				}
			}
		}
		g.Expect(previous).To(Equal(len(a.spec.authorities())))
	})
}
