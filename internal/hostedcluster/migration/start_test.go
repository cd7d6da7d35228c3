package migration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func at(hour int) time.Time { return time.Date(2026, 1, 2, hour, 30, 0, 0, time.UTC) }

func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        Settings
		err         string
	}{
		"When nothing is set one at a time should be moved, if asked": {want: Settings{Limit: 1}},
		"When all is set it should be read": {annotations: map[string]string{ModeAnnotation: "Automatic", PausedAnnotation: "true", LimitAnnotation: "3", WindowAnnotation: "22:00-04:30"},
			want: Settings{Automatic: true, Paused: true, Limit: 3, From: 22 * 60, Until: 4*60 + 30}},
		"When the mode is unknown it should say what is":       {annotations: map[string]string{ModeAnnotation: "Fast"}, err: "must be Automatic or Manual"},
		"When the limit is no number it should say what it is": {annotations: map[string]string{LimitAnnotation: "many"}, err: "from 1 to 10"},
		"When the limit is too high it should say so":          {annotations: map[string]string{LimitAnnotation: "11"}, err: "from 1 to 10"},
		"When the window is none it should show one":           {annotations: map[string]string{WindowAnnotation: "night"}, err: "22:00-04:00"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := ParseSettings(tc.annotations)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestMayStart(t *testing.T) {
	hc := func(annotations ...string) hyperv1.HostedCluster {
		out := hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c", Annotations: map[string]string{}}}
		for i := 0; i < len(annotations); i += 2 {
			out.Annotations[annotations[i]] = annotations[i+1]
		}
		return out
	}
	const lock, failed, ask = hyperv1.PrivateCAPIMigrationInProgressAnnotation, hyperv1.PrivateCAPIMigrationFailedAnnotation, hyperv1.PrivateCAPIMigrateAnnotation
	for name, tc := range map[string]struct {
		this     hyperv1.HostedCluster
		others   []hyperv1.HostedCluster
		settings Settings
		hour     int
		want     string
	}{
		"When nothing is going on it may begin":                             {this: hc(), settings: Settings{Limit: 1}},
		"When moves are paused it should wait, whoever asks":                {this: hc(ask, "true"), settings: Settings{Limit: 1, Paused: true}, want: "pauses all moves"},
		"When another is being moved it should wait":                        {this: hc(ask, "true"), others: []hyperv1.HostedCluster{hc(lock, "true")}, settings: Settings{Limit: 1}, want: "1 of at most 1"},
		"When there is room for another it may begin":                       {this: hc(), others: []hyperv1.HostedCluster{hc(lock, "true")}, settings: Settings{Limit: 2}},
		"When another failed it should not begin by itself":                 {this: hc(), others: []hyperv1.HostedCluster{hc(failed, "internal")}, settings: Settings{Limit: 1}, want: "stop the others"},
		"When another failed a person may go on":                            {this: hc(ask, "true"), others: []hyperv1.HostedCluster{hc(failed, "internal")}, settings: Settings{Limit: 1}},
		"When another was asked back that is no failure":                    {this: hc(), others: []hyperv1.HostedCluster{hc(failed, string(ReasonRequested))}, settings: Settings{Limit: 1}},
		"When it is outside of the window it should wait":                   {this: hc(), settings: Settings{Limit: 1, From: 22 * 60, Until: 4 * 60}, hour: 12, want: "other times of day"},
		"When it is inside of a window that spans midnight it should begin": {this: hc(), settings: Settings{Limit: 1, From: 22 * 60, Until: 4 * 60}, hour: 3},
		"When a person asks the window doesn't matter":                      {this: hc(ask, "true"), settings: Settings{Limit: 1, From: 22 * 60, Until: 4 * 60}, hour: 12},
	} {
		t.Run(name, func(t *testing.T) {
			got := mayStart(&tc.this, append(tc.others, tc.this), tc.settings, at(tc.hour))
			if tc.want == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
			} else {
				NewWithT(t).Expect(got).To(ContainSubstring(tc.want))
			}
		})
	}
}

func TestRecheck(t *testing.T) {
	for name, tc := range map[string]struct {
		waiting int
		want    time.Duration
	}{
		"When one waits it should look again soon":              {1, recheckStart},
		"When a hundred wait each should look less often":       {100, 3 * recheckStart},
		"When thousands wait each should look every 5 minutes":  {5000, recheckLast},
		"When nobody is left to wait it should be the shortest": {0, recheckStart},
	} {
		t.Run(name, func(t *testing.T) {
			all := make([]hyperv1.HostedCluster, tc.waiting)
			for i := range all {
				all[i].Annotations = map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope}
			}
			NewWithT(t).Expect(recheck(all, Settings{Automatic: true})).To(Equal(tc.want))
		})
	}
}
