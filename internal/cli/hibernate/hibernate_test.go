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
	g.Expect(annotate(t.Context(), c, key, "true")).To(Succeed())
	g.Expect(annotations()).To(Equal(map[string]string{"mine": "x", hyperv1.HibernateAnnotation: "true"}))
	g.Expect(annotate(t.Context(), c, key, nil)).To(Succeed())
	g.Expect(annotations()).To(Equal(map[string]string{"mine": "x"}))
	g.Expect(annotate(t.Context(), c, key, nil)).To(Succeed(), "waking one that is awake changes nothing")
	err := annotate(t.Context(), c, client.ObjectKey{Namespace: "clusters", Name: "other"}, "true")
	g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
}
