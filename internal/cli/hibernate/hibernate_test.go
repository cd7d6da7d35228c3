package hibernate

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/pause"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestUntil(t *testing.T) {
	for name, c := range map[string]struct {
		until   until
		want    string
		problem string
	}{
		"When nothing is said it should sleep until it is woken":       {until{}, "true", ""},
		"When a time is said it should sleep until then":               {until{at: "2026-11-02T08:00:00+01:00"}, "2026-11-02T07:00:00Z", ""},
		"When a duration is said it should sleep as long":              {until{span: 12 * time.Hour}, "2026-11-02T00:00:00Z", ""},
		"When both are said it should refuse":                          {until{at: "x", span: time.Hour}, "", "leave one out"},
		"When the time has passed it should refuse":                    {until{at: "2026-11-01T11:00:00Z"}, "", "has passed"},
		"When the time is none it should say how to write it":          {until{at: "tomorrow"}, "", "write a time such as 2026-11-02T00:00:00Z"},
		"When the duration is negative it should say how to write one": {until{span: -time.Hour}, "", "such as 12h"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := c.until.value(noon)
			if c.problem != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.problem)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(c.want))
		})
	}
}

func TestAnnotate(t *testing.T) {
	g := NewWithT(t)
	key := client.ObjectKey{Namespace: "clusters", Name: "demo"}
	c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(
		&hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{"mine": "x"}}}).Build()
	annotations := func() map[string]string {
		hc := &hyperv1.HostedCluster{}
		g.Expect(c.Get(t.Context(), key, hc)).To(Succeed())
		return hc.Annotations
	}
	g.Expect(annotate(t.Context(), c, key, map[string]any{hyperv1.HibernateAnnotation: "true"})).To(Succeed())
	g.Expect(annotations()).To(Equal(map[string]string{"mine": "x", hyperv1.HibernateAnnotation: "true"}))
	g.Expect(annotate(t.Context(), c, key, map[string]any{hyperv1.HibernateAnnotation: nil})).To(Succeed())
	g.Expect(annotations()).To(Equal(map[string]string{"mine": "x"}))
	g.Expect(annotate(t.Context(), c, key, map[string]any{hyperv1.HibernateAnnotation: nil})).To(Succeed(), "waking one that is awake changes nothing")
	err := annotate(t.Context(), c, client.ObjectKey{Namespace: "clusters", Name: "other"}, map[string]any{hyperv1.HibernateAnnotation: "true"})
	g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
}

func TestOrder(t *testing.T) {
	weekdays := times{sleep: "0 20 * * 1-5", wake: "0 7 * * 1-5", zone: "Europe/Berlin"}
	for name, c := range map[string]struct {
		times   times
		until   until
		want    map[string]any
		said    string
		problem string
	}{
		"When nothing is said it should sleep until it is woken": {want: map[string]any{hyperv1.HibernateAnnotation: "true"}, said: "`hypershift wake` wakes it"},
		"When a schedule is given it should end what was ordered": {times: weekdays, said: "wakes at 2026-11-02T06:00:00Z by its schedule",
			want: map[string]any{hyperv1.HibernateAnnotation: nil, pause.ScheduleAnnotation: "sleep 0 20 * * 1-5; wake 0 7 * * 1-5; zone Europe/Berlin"}},
		"When the schedule is taken away it should do nothing else": {times: times{none: true}, said: "has no schedule any more", want: map[string]any{pause.ScheduleAnnotation: nil}},
		"When the schedule is taken away and a duration given it should do both": {times: times{none: true}, until: until{span: 12 * time.Hour},
			said: "has no schedule any more, goes to sleep, and wakes at 2026-11-02T00:00:00Z",
			want: map[string]any{pause.ScheduleAnnotation: nil, hyperv1.HibernateAnnotation: "2026-11-02T00:00:00Z"}},
		"When the schedule is taken away and a time given it should do both": {times: times{none: true}, until: until{at: "2026-11-02T07:00:00Z"},
			said: "has no schedule any more, goes to sleep, and wakes at 2026-11-02T07:00:00Z",
			want: map[string]any{pause.ScheduleAnnotation: nil, hyperv1.HibernateAnnotation: "2026-11-02T07:00:00Z"}},
		"When half of a schedule is given it should ask for the other": {times: times{sleep: "0 20 * * *"}, problem: "needs --sleep and --wake"},
		"When a zone alone is given it should ask for times":           {times: times{zone: "UTC"}, problem: "needs --sleep and --wake"},
		"When a schedule is wrong it should say what":                  {times: times{sleep: "0 20 * *", wake: "0 7 * * *"}, problem: "five fields"},
		"When a schedule and a time are given it should refuse":        {times: weekdays, until: until{span: time.Hour}, problem: "leave out"},
		"When a schedule is given and taken away it should refuse":     {times: times{sleep: "0 20 * * *", wake: "0 7 * * *", none: true}, problem: "leave out"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := c.times.order(c.until, noon)
			if c.problem != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.problem)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.annotations).To(Equal(c.want))
			g.Expect(got.said).To(ContainSubstring(c.said))
		})
	}
}
