package browser

import (
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
)

// press is what hands do: a key of which a page says that it is its own gives no character. What chromedp sends would give one all the same.
func press(keys string) step {
	return chromedp.KeyEvent(keys, func(k *input.DispatchKeyEventParams) {
		if k.Type == kb.KeyDown {
			k.Type = kb.KeyRawDown
		}
	})
}

func TestKeyboard(t *testing.T) {
	g := NewWithT(t)
	c := newConsole(t)
	b := open(t, c)
	b.signIn()
	path := func() string { return eval[string](b, `location.pathname + location.search`) }
	b.visit("/?show=all", ".row .badge")
	// To the first row, the second, back, and in.
	for _, key := range []string{"j", "j", "k"} {
		b.run(press(key))
	}
	focused := func() string {
		return eval[string](b, `document.activeElement.closest('[data-row]')?.dataset.row ?? document.activeElement.tagName`)
	}
	g.Eventually(focused, patience).Should(Equal("0"))
	b.run(press(kb.Enter))
	g.Eventually(path, patience).Should(HavePrefix("/hc/"))
	b.run(shown("[role=tab]"))
	// Tabs by arrows.
	b.run(chromedp.Focus(chromedp.CSS("[role=tab][aria-selected=true]")), press(kb.ArrowRight))
	g.Eventually(path, patience).Should(ContainSubstring("tab=pools"))
	// Pages by their letters, and the search.
	b.run(press("g"), press("r"))
	g.Eventually(path, patience).Should(Equal("/rollouts"))
	b.run(press("g"), press("f"))
	g.Eventually(path, patience).Should(Equal("/"))
	b.run(shown(".search"), press("/"), press("pay"))
	g.Eventually(path, patience).Should(ContainSubstring("q=pay"))
	g.Eventually(func() string { return b.text(".gbody") }, patience).Should(And(ContainSubstring("payments-eu"), Not(ContainSubstring("loadtest"))))
	// Help opens, holds the focus, and closes.
	b.run(press(kb.Escape), press("?"), shown(".help"), press(kb.Escape), chromedp.WaitNotPresent(chromedp.CSS(".help")))
	g.Expect(b.complaints()).To(BeEmpty())
}

func TestSignIn(t *testing.T) {
	g := NewWithT(t)
	c := newConsole(t)
	b := open(t, c)
	b.run(chromedp.Navigate("http://"+c.address+"/#ticket=wrong"), shown(".signin .trouble"))
	g.Expect(b.text(".signin .trouble")).To(ContainSubstring("open the one that the command printed last"))
	g.Expect(b.findings()).To(BeEmpty())
	ticket := c.gate.Ticket()
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate("http://"+c.address+"/#ticket="+ticket), shown(".top nav"))
	g.Expect(eval[string](b, `location.hash`)).To(BeEmpty(), "the ticket is taken out of the address")
	b.run(chromedp.Reload(), shown(".top nav"))
	other := open(t, c)
	other.run(chromedp.Navigate("http://"+c.address+"/#ticket="+ticket), shown(".signin .trouble"))
}
