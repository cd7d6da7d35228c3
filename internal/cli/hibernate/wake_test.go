package hibernate

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/pause"
)

// nights sleeps from eight in the evening to seven in the morning.
const nights = "sleep 0 20 * * *; wake 0 7 * * *"

func clusterWith(value, schedule, reason string, since time.Time) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{TypeMeta: metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: map[string]string{}}}
	if value != "" {
		hc.Annotations[hyperv1.HibernateAnnotation] = value
	}
	if schedule != "" {
		hc.Annotations[pause.ScheduleAnnotation] = schedule
	}
	if reason != "" {
		hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.HostedClusterHibernated, Reason: reason, LastTransitionTime: metav1.NewTime(since)}}
	}
	return hc
}

func TestWake(t *testing.T) {
	night := time.Date(2026, 11, 1, 22, 0, 0, 0, time.UTC)
	nothing, removed := map[string]any(nil), map[string]any{hyperv1.HibernateAnnotation: nil}
	evening := map[string]any{hyperv1.HibernateAnnotation: "2026-11-01T20:00:00Z"}
	for name, c := range map[string]struct {
		value, schedule, reason string
		since, now              time.Time
		want                    map[string]any
		said                    string
	}{
		"When a cluster with a schedule is awake nothing should be written":      {schedule: nights, now: noon, want: nothing, said: "is awake, and sleeps at 2026-11-01T20:00:00Z by its schedule"},
		"When it was woken before nothing should be written":                     {value: "2026-11-01T20:00:00Z", schedule: nights, now: night, want: nothing, said: "is awake, and sleeps at 2026-11-02T20:00:00Z"},
		"When it is still on its way up nothing should be written":               {value: "2026-11-01T20:00:00Z", schedule: nights, reason: hyperv1.WakingReason, now: night, want: nothing, said: "wakes already"},
		"When it is to stay awake nothing should be written":                     {value: "false", schedule: nights, now: night, want: nothing, said: `is awake, and stays so: annotation hypershift.openshift.io/hibernate is "false"`},
		"When it sleeps by its schedule the last time to sleep should not count": {schedule: nights, now: night, want: evening, said: "wakes, and sleeps at 2026-11-02T20:00:00Z"},
		"When it sleeps by hand in the night it should wake":                     {value: "true", schedule: nights, now: night, want: evening, said: "wakes, and sleeps at 2026-11-02T20:00:00Z"},
		"When it sleeps by hand until a time to come it should wake":             {value: "2026-11-02T12:00:00Z", schedule: nights, now: night, want: evening, said: "wakes, and"},
		"When it sleeps by hand by day it should wake": {value: "true", schedule: nights, now: noon,
			want: map[string]any{hyperv1.HibernateAnnotation: "2026-10-31T20:00:00Z"}, said: "wakes, and sleeps at 2026-11-01T20:00:00Z"},
		"When the operator saw the time to sleep before the API server it should wake": {schedule: nights, reason: hyperv1.WorkersStoppingReason,
			since: night.Add(-2*time.Hour + time.Second), now: night.Add(-2*time.Hour - time.Minute), want: evening, said: "wakes, and"},
		"When its schedule can't be read it should say so":             {schedule: "at night", now: noon, want: nothing, said: "write it like"},
		"When its schedule can't be read and it sleeps it should wake": {value: "true", schedule: "at night", now: noon, want: removed, said: "wakes"},
		"When it has no schedule it should wake":                       {value: "true", now: noon, want: removed, said: "wakes"},
		"When it has no schedule and is awake it should say so":        {now: noon, want: removed, said: "is awake"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := wake(clusterWith(c.value, c.schedule, c.reason, c.since), c.now)
			g.Expect(got.annotations).To(Equal(c.want))
			g.Expect(got.said).To(ContainSubstring(c.said))
		})
	}
}

// TestWakeProperties has the API server's clock and the operator's differ.
func TestWakeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := noon.Add(time.Duration(rapid.IntRange(0, 2*24*60*60).Draw(t, "server")) * time.Second)
		operator := server.Add(time.Duration(rapid.IntRange(-300, 300).Draw(t, "skew")) * time.Second)
		value := rapid.SampledFrom([]string{"", "true", "2026-11-01T20:00:00Z", "2026-11-04T12:00:00Z"}).Draw(t, "value")
		hc := clusterWith(value, nights, "", time.Time{})
		before := pause.Hibernation(hc.Annotations, operator)
		if before.Active {
			hc = clusterWith(value, nights, hyperv1.WorkersStoppingReason, operator)
		}
		dueSoon := before.Next.Sub(operator) <= 5*time.Minute
		for k, v := range wake(hc, server).annotations {
			hc.Annotations[k] = v.(string)
		}
		after := pause.Hibernation(hc.Annotations, operator)
		if before.Active && after.Active {
			t.Fatalf("at %s of the API server and %s of the operator it was not woken: %v", server, operator, hc.Annotations)
		}
		if !before.Active && after.Active && !dueSoon {
			t.Fatalf("at %s of the API server and %s of the operator it was put to sleep: %v", server, operator, hc.Annotations)
		}
	})
}

// TestWakeByTwoClocks runs the command on this machine against an API server whose clock shows something else.
func TestWakeByTwoClocks(t *testing.T) {
	run := func(g *WithT, schedule string, at time.Time) (patches []string, out string) {
		answer := func(w http.ResponseWriter, v any) {
			w.Header().Set("Content-Type", "application/json")
			g.Expect(json.NewEncoder(w).Encode(v)).To(Succeed())
		}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", at.UTC().Format(http.TimeFormat))
			switch r.URL.Path {
			case "/api":
				answer(w, metav1.APIVersions{})
			case "/apis":
				version := metav1.GroupVersionForDiscovery{GroupVersion: hyperv1.GroupVersion.String(), Version: hyperv1.GroupVersion.Version}
				answer(w, metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: hyperv1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}})
			case "/apis/" + hyperv1.GroupVersion.String():
				answer(w, metav1.APIResourceList{GroupVersion: hyperv1.GroupVersion.String(),
					APIResources: []metav1.APIResource{{Name: "hostedclusters", Kind: "HostedCluster", Namespaced: true, Verbs: metav1.Verbs{"get", "patch"}}}})
			case "/apis/" + hyperv1.GroupVersion.String() + "/namespaces/clusters/hostedclusters/demo":
				if r.Method == http.MethodPatch {
					body, err := io.ReadAll(r.Body)
					g.Expect(err).NotTo(HaveOccurred())
					patches = append(patches, string(body))
				}
				answer(w, clusterWith("", schedule, "", time.Time{}))
			default:
				http.Error(w, "forbidden", http.StatusForbidden)
			}
		}))
		defer srv.Close()
		file := filepath.Join(t.TempDir(), "kubeconfig")
		g.Expect(os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a"}}],"clusters":[{"name":"a","cluster":{"server":"`+srv.URL+`"}}]}`), 0o600)).To(Succeed())
		cmd, buf := WakeCommand(), &bytes.Buffer{}
		cmd.SetOut(buf)
		cmd.SetArgs([]string{"--name=demo", "--kubeconfig=" + file})
		g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
		return patches, buf.String()
	}
	t.Run("When a cluster is awake by the API server's clock it should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		patches, out := run(g, nights, noon)
		g.Expect(patches).To(BeEmpty())
		g.Expect(out).To(Equal("clusters/demo is awake, and sleeps at 2026-11-01T20:00:00Z by its schedule\n"))
	})
	t.Run("When it sleeps by the API server's clock the time should be that server's", func(t *testing.T) {
		g := NewWithT(t)
		patches, out := run(g, nights, noon.Add(9*time.Hour))
		g.Expect(patches).To(ConsistOf(ContainSubstring(`"2026-11-01T20:00:00Z"`)))
		g.Expect(out).To(Equal("clusters/demo wakes, and sleeps at 2026-11-02T20:00:00Z by its schedule\n"))
	})
}
