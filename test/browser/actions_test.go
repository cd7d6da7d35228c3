package browser

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/console/consoletest"
	"hcp.internal/platform/internal/kube/patch"
)

func TestActions(t *testing.T) {
	g := NewWithT(t)
	c := newConsole(t)
	b := open(t, c)
	b.signIn()
	paused := func() string {
		owner := &packagesv1.HostedClusterPackage{}
		g.Expect(seeded.Get(t.Context(), client.ObjectKey{Name: "logging-agent"}, owner)).To(Succeed())
		return owner.Annotations[packagesv1.RolloutPausedAnnotation]
	}
	t.Cleanup(func() {
		_ = seeded.Patch(context.Background(), &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "logging-agent"}}, patch.Annotation(packagesv1.RolloutPausedAnnotation, nil))
	})
	asked := chromedp.Steps(shown("dialog[open] .effects li"), shown("dialog[open] .buttons .primary"))

	b.visit("/rollout/logging-agent", ".cell.flight")
	// By keyboard: what is asked for is shown, and nothing is done when one leaves.
	b.run(chromedp.Focus(chromedp.CSS(".act")), press(kb.Enter), asked)
	g.Expect(b.text("dialog")).To(And(ContainSubstring("production/stock"), ContainSubstring("hypershift rollout pause hostedclusterpackage/logging-agent"), ContainSubstring("Nothing is changed yet")))
	g.Expect(b.findings()).To(BeEmpty())
	b.shoot("pause")
	b.run(press(kb.Escape), chromedp.WaitNotPresent(chromedp.CSS("dialog")))
	g.Expect(paused()).To(BeEmpty())
	// Done, it is on the page; and taken back.
	b.run(chromedp.Click(chromedp.CSS(".act")), asked, chromedp.Click(chromedp.CSS("dialog .buttons .primary")), shown(".why.held"), chromedp.WaitNotPresent(chromedp.CSS("dialog")))
	g.Expect(paused()).To(Equal("true"))
	g.Expect(b.findings()).To(BeEmpty())
	b.run(chromedp.Click(chromedp.CSS(".act")), asked, chromedp.Click(chromedp.CSS("dialog .buttons .primary")), chromedp.WaitNotPresent(chromedp.CSS(".why.held")))
	g.Expect(paused()).To(BeEmpty())
	g.Expect(b.complaints()).To(BeEmpty())
}

func TestEvents(t *testing.T) {
	g := NewWithT(t)
	c := newConsole(t)
	b := open(t, c)
	b.signIn()
	b.visit("/events?ns=production", ".events li")
	happen(t, "Stream", "this happened while somebody looked")
	g.Eventually(func() string { return b.text(".events") }, patience).Should(ContainSubstring("this happened while somebody looked"))
	// Paused, the page stays as it is.
	eval[bool](b, `[...document.querySelectorAll('.toolbar button')].find(b => b.textContent === 'Pause').click(), true`)
	b.run(shown(".toolbar [aria-pressed=true].plain"))
	happen(t, "Later", "this happened later")
	b.run(chromedp.Reload(), shown(".events li"))
	g.Eventually(func() string { return b.text(".events") }, patience).Should(ContainSubstring("this happened later"))
}

// happen makes a warning about production/stock.
func happen(t *testing.T, reason, message string) {
	t.Helper()
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: consoletest.Production, GenerateName: "browser-"}, InvolvedObject: corev1.ObjectReference{Kind: "HostedCluster", Namespace: consoletest.Production, Name: "stock"},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, Count: 1, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "test"}}
	NewWithT(t).Expect(seeded.Create(t.Context(), e)).To(Succeed())
	t.Cleanup(func() { _ = seeded.Delete(context.Background(), e) })
}
