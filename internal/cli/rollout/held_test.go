package rollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

func TestWatcher(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fleet := func(annotations map[string]string) *packagesv1.HostedClusterPackage {
		p := &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "addon", Annotations: annotations}}
		p.Status.TotalPackages = 3
		return p
	}
	broken := packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-a", Name: "addon", Generation: 2}}
	broken.Status.Conditions = []metav1.Condition{{Type: packagesv1.ConditionInvalid, Status: metav1.ConditionTrue, Message: "no such image", ObservedGeneration: 2}}
	older := *broken.DeepCopy()
	older.Generation = 3

	for name, tc := range map[string]struct {
		annotations map[string]string
		inFlight    []packagesv1.Package
		after       time.Duration
		patience    time.Duration
		want        string
	}{
		"When it is paused it should say how it goes on":                 {annotations: map[string]string{packagesv1.RolloutPausedAnnotation: "true"}, want: "rollout resume hostedclusterpackage/addon"},
		"When all in flight are invalid it should name them":             {inFlight: []packagesv1.Package{broken}, want: "clusters-a/addon can't be installed: no such image"},
		"When one in flight may get well it should go on":                {inFlight: []packagesv1.Package{broken, older}},
		"When nothing has changed for a minute it should go on":          {after: time.Minute, patience: holdAfter},
		"When nothing has changed for long it should be held":            {after: holdAfter, patience: holdAfter, want: "nothing has changed for 10m0s: 0/3 updated"},
		"When a group soaks it should be given the time for it":          {annotations: map[string]string{packagesv1.RolloutSoakAnnotation: "1h"}, after: time.Hour, patience: holdAfter},
		"When a group soaked and nothing happened it should be held":     {annotations: map[string]string{packagesv1.RolloutSoakAnnotation: "1h"}, after: time.Hour + holdAfter, patience: holdAfter, want: "nothing has changed"},
		"When there is no limit it should go on for as long as it takes": {after: 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := watcher{patience: tc.patience}
			p := fleet(tc.annotations)
			held := w.look(p, tc.inFlight, begin)
			if tc.after > 0 {
				g.Expect(held).To(BeEmpty())
				held = w.look(p, tc.inFlight, begin.Add(tc.after))
			}
			if tc.want == "" {
				g.Expect(held).To(BeEmpty())
			} else {
				g.Expect(held).To(ContainSubstring(tc.want))
			}
			p.Status.UpdatedPackages = 1
			if len(tc.inFlight) == 0 && tc.annotations[packagesv1.RolloutPausedAnnotation] == "" {
				g.Expect(w.look(p, tc.inFlight, begin.Add(tc.after))).To(BeEmpty(), "something changed")
			}
		})
	}
}
