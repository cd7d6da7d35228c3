package pki

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLastPlan(t *testing.T) {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	spec := Spec{Namespace: "clusters-demo", APIHost: "10.97.0.1"}
	objects := func(version string) Observed {
		return Observed{Secrets: map[string]*corev1.Secret{RootCA: {ObjectMeta: metav1.ObjectMeta{Name: RootCA, UID: "1", ResourceVersion: version}}}}
	}
	problem := errors.New("a problem")
	for name, tc := range map[string]struct {
		renewIn  time.Duration
		spec     Spec
		version  string
		after    time.Duration
		want     bool
		wantLeft time.Duration
	}{
		"When nothing changed it should give the plan of before":                      {spec: spec, version: "5", after: time.Minute, want: true},
		"When a renewal is due later it should say when, from now":                    {spec: spec, version: "5", renewIn: 30 * time.Minute, after: 10 * time.Minute, want: true, wantLeft: 20 * time.Minute},
		"When a renewal is due it should look again":                                  {spec: spec, version: "5", renewIn: 30 * time.Minute, after: 30 * time.Minute},
		"When an object changed it should look again":                                 {spec: spec, version: "6", after: time.Minute},
		"When the spec changed it should look again":                                  {spec: Spec{Namespace: "clusters-demo", APIHost: "10.97.0.2"}, version: "5", after: time.Minute},
		"When it was long ago it should look again":                                   {spec: spec, version: "5", after: settledFor},
		"When the clock was set back it should look again, for what is not valid yet": {spec: spec, version: "5", after: -time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var last lastPlan
			_, ok := last.plan(stateOf(spec, objects("5")), began)
			g.Expect(ok).To(BeFalse(), "nothing is remembered yet")
			last.remember(stateOf(spec, objects("5")), Plan{RecheckAfter: tc.renewIn, Problems: []error{problem}}, began)
			plan, ok := last.plan(stateOf(tc.spec, objects(tc.version)), began.Add(tc.after))
			g.Expect(ok).To(Equal(tc.want))
			g.Expect(plan.RecheckAfter).To(Equal(tc.wantLeft))
			if tc.want {
				g.Expect(plan.Problems).To(ConsistOf(problem))
			}
		})
	}
	t.Run("When an object is gone, or another one has its name, it should look again", func(t *testing.T) {
		g := NewWithT(t)
		state := stateOf(spec, objects("5"))
		g.Expect(stateOf(spec, Observed{})).NotTo(Equal(state))
		successor := objects("5")
		successor.Secrets[RootCA].UID = "2"
		g.Expect(stateOf(spec, successor)).NotTo(Equal(state))
		moved := Observed{ConfigMaps: map[string]*corev1.ConfigMap{RootCA: {ObjectMeta: successor.Secrets[RootCA].ObjectMeta}}}
		g.Expect(stateOf(spec, moved)).NotTo(Equal(stateOf(spec, successor)))
	})
}
