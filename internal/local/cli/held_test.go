//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/local"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const unpause = `end that with: kubectl patch hostedcluster -n clusters demo --type merge -p '{"spec":{"pausedUntil":null}}'`

func TestHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		pausedUntil, hibernate, schedule string
		deleted                          bool
		want                             []string // empty: it is waited for
	}{
		"When nobody holds it it should be waited for":                           {},
		"When it sleeps it should say how to wake it":                            {hibernate: "true", want: []string{"HostedCluster clusters/demo sleeps, so", "hypershift wake demo"}},
		"When it sleeps for some time it should say until when":                  {hibernate: "2026-11-21T13:00:00Z", want: []string{"sleeps until 2026-11-21T13:00:00Z", "hypershift wake demo"}},
		"When it has slept for long enough it should be waited for":              {hibernate: "2026-11-21T11:00:00Z"},
		"When it sleeps by schedule it should say how to wake it":                {schedule: "sleep 0 11 * * *; wake 0 15 * * *", want: []string{"sleeps", "hypershift wake demo"}},
		"When it is awake by schedule it should be waited for":                   {schedule: "sleep 0 15 * * *; wake 0 11 * * *"},
		"When it is paused it should say how to end that":                        {pausedUntil: "true", want: []string{"is paused, so", unpause}},
		"When it is paused for some time it should say until when":               {pausedUntil: "2026-11-21T13:00:00Z", want: []string{"is paused until 2026-11-21T13:00:00Z, so", unpause}},
		"When the pause is over it should be waited for":                         {pausedUntil: "2026-11-21T11:00:00Z"},
		"When it sleeps and is paused it should say what has to be ended first":  {pausedUntil: "true", hibernate: "true", want: []string{unpause}},
		"When it is being deleted it should be looked at, for that to be said":   {hibernate: "true", deleted: true},
		"When the annotation can't be read it should be waited for, as if awake": {hibernate: "tonight"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := testenv.HostedCluster(create.DefaultNamespace, demo)
			hc.Annotations = map[string]string{hyperv1.HibernateAnnotation: tc.hibernate, pause.ScheduleAnnotation: tc.schedule}
			hc.Spec.PausedUntil = ptr.To(tc.pausedUntil)
			if tc.deleted {
				hc.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			got := held(hc, noon)
			if len(tc.want) == 0 {
				g.Expect(got).To(BeEmpty())
			}
			for _, want := range tc.want {
				g.Expect(got).To(ContainSubstring(want))
			}
		})
	}
}

// TestUpWithAHeldDemo is a second "up" after the user has put the demo cluster to sleep, or paused it.
func TestUpWithAHeldDemo(t *testing.T) {
	env := testenv.Start(t)
	api := env.Client(t, connect.Scheme())
	g := NewWithT(t)
	g.Expect(api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: create.DefaultNamespace}})).To(Succeed())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())

	for name, tc := range map[string]struct {
		hold func(*hyperv1.HostedCluster)
		says string
	}{
		"When the demo cluster sleeps it should say so, and go on without it": {
			func(hc *hyperv1.HostedCluster) {
				hc.Annotations = map[string]string{hyperv1.HibernateAnnotation: "true"}
			}, "hypershift wake demo"},
		"When the demo cluster is paused it should say so, and go on without it": {
			func(hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = ptr.To("true") }, unpause},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := testenv.HostedCluster(create.DefaultNamespace, demo)
			tc.hold(hc)
			g.Expect(api.Create(t.Context(), hc)).To(Succeed())
			t.Cleanup(func() { g.Expect(api.Delete(context.WithoutCancel(t.Context()), hc)).To(Succeed()) })
			var shown []string
			c := local.Cluster{
				Kubeconfig: kubeconfig, DemoKubeconfig: filepath.Join(t.TempDir(), "demo.kubeconfig"), Clock: clocktesting.NewFakeClock(noon),
				Show: func(format string, args ...any) { shown = append(shown, fmt.Sprintf(format, args...)) },
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // nobody waits, or this ends it
			defer cancel()
			g.Expect(createDemo(ctx, c, t.Logf)).To(Succeed())
			g.Expect(shown).To(HaveExactElements(ContainSubstring(tc.says)))
			g.Expect(waitForWorkers(ctx, c, t.Logf)).To(Succeed())
			tour := awake(func(context.Context, local.Cluster, local.Say) error {
				t.Error("the tour of a cluster that is held should not begin")
				return nil
			})
			g.Expect(tour(ctx, c, t.Logf)).To(MatchError(local.ErrNotNow))
			g.Expect(c.DemoKubeconfig).NotTo(BeAnExistingFile())
		})
	}
	t.Run("When the user has destroyed the demo cluster the tour should go on as ever", func(t *testing.T) {
		g := NewWithT(t)
		ran := false
		tour := awake(func(context.Context, local.Cluster, local.Say) error { ran = true; return nil })
		g.Expect(tour(t.Context(), local.Cluster{Kubeconfig: kubeconfig, Clock: clocktesting.NewFakeClock(noon)}, t.Logf)).To(Succeed())
		g.Expect(ran).To(BeTrue())
	})
}
