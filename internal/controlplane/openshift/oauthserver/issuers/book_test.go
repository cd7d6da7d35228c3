package issuers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"hcp.internal/platform/internal/controlplane/component"
)

// counting answers as it is told, and counts.
type counting struct {
	mu        sync.Mutex
	urls      URLs
	yes       bool
	err       error
	asked     int
	passwords int
}

func (c *counting) URLs(context.Context, Question) (URLs, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.urls, c.err
}

func (c *counting) Password(context.Context, string, Question) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passwords++
	return c.yes, c.err
}

// desk is a book with what it is asked of.
type desk struct {
	t       *testing.T
	book    *Book
	clock   *clocktesting.FakePassiveClock
	asker   *counting
	changed chan struct{}
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), changed: make(chan struct{}, 10),
		asker: &counting{urls: URLs{"https://a", "https://t", ""}, yes: true}}
	d.book = &Book{Clock: d.clock, Changed: func(context.Context) { d.changed <- struct{}{} }}
	return d
}

func (d *desk) ask(q Question) (component.OpenIDAnswer, time.Duration) {
	out, again := d.book.Answers(d.t.Context(), []Question{q}, func() (Asker, error) { return d.asker, nil })
	return out[q.Name], again
}

// settled waits until nothing is being asked.
func (d *desk) settled() {
	NewWithT(d.t).Eventually(func() int {
		d.book.mu.Lock()
		defer d.book.mu.Unlock()
		return d.book.running
	}, time.Minute, time.Millisecond).Should(BeZero())
}

var question = Question{Name: "idp", Issuer: "https://idp", ClientID: "me", ClientSecret: "hush", Secret: "7"}

var known = component.OpenIDAnswer{Issuer: "https://idp", Authorize: "https://a", Token: "https://t", Challenge: true, Secret: "7"}

func TestBook(t *testing.T) {
	t.Run("When a question is new it should be asked in the background, and the answer believed for its time", func(t *testing.T) {
		g := NewWithT(t)
		d := newDesk(t)
		answer, again := d.ask(question)
		g.Expect(answer).To(Equal(component.OpenIDAnswer{Issuer: "https://idp"}))
		g.Expect(again).To(Equal(asking))
		g.Eventually(d.changed, time.Minute).Should(Receive())
		answer, again = d.ask(question)
		g.Expect(answer).To(Equal(known))
		g.Expect(again).To(BeZero())
		d.clock.SetTime(d.clock.Now().Add(urlsFresh))
		_, _ = d.ask(question)
		d.settled()
		g.Expect([]int{d.asker.asked, d.asker.passwords}).To(Equal([]int{2, 1}), "a password is tried once a week")
		g.Expect(d.changed).NotTo(Receive(), "nothing else was found")
		d.clock.SetTime(d.clock.Now().Add(challengeFresh))
		_, _ = d.ask(question)
		d.settled()
		g.Expect([]int{d.asker.asked, d.asker.passwords}).To(Equal([]int{3, 2}))
	})
	t.Run("When the client has another password it should be tried, and when the endpoint moves, too", func(t *testing.T) {
		g := NewWithT(t)
		d := newDesk(t)
		_, _ = d.ask(question)
		d.settled()
		other := question
		other.Secret = "8"
		_, _ = d.ask(other)
		d.settled()
		g.Expect(d.asker.passwords).To(Equal(2))
		d.asker.urls.Token = "https://t2"
		d.clock.SetTime(d.clock.Now().Add(urlsFresh))
		_, _ = d.ask(other)
		d.settled()
		g.Expect(d.asker.passwords).To(Equal(3))
	})
	t.Run("When an issuer is down it should be asked less and less often, and what is known hold", func(t *testing.T) {
		g := NewWithT(t)
		d := newDesk(t)
		_, _ = d.ask(question)
		d.settled()
		g.Eventually(d.changed, time.Minute).Should(Receive(), "the first answer") // it is told after it is settled
		d.asker.err = errors.New("dial tcp 10.0.0.1:5443->1.2.3.4: no")
		d.clock.SetTime(d.clock.Now().Add(urlsFresh))
		for i, wait := range []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry, 8 * firstRetry, 16 * firstRetry, 32 * firstRetry, lastRetry, lastRetry} {
			_, _ = d.ask(question)
			d.settled()
			if i == 0 {
				g.Eventually(d.changed, time.Minute).Should(Receive(), "the first failure")
			}
			answer, again := d.ask(question)
			g.Expect(again).To(Equal(wait), "round %d", i)
			g.Expect(answer.Authorize).To(Equal("https://a"))
			g.Expect(answer.Problem).To(MatchError(And(HavePrefix(`asking issuer "https://idp": `), Not(ContainSubstring("1.2.3.4")))))
			d.clock.SetTime(d.clock.Now().Add(wait))
		}
		g.Expect(d.changed).NotTo(Receive(), "a failure like the one before is not told")
	})
	t.Run("When another process knew the answer it should hold at once, and no password be tried again", func(t *testing.T) {
		g := NewWithT(t)
		d := newDesk(t)
		q := question
		q.Before = known
		answer, _ := d.ask(q)
		g.Expect(answer).To(Equal(known))
		d.settled()
		g.Expect([]int{d.asker.asked, d.asker.passwords}).To(Equal([]int{1, 0}))
		q.Name, q.Issuer = "other", "https://elsewhere"
		answer, _ = d.ask(q)
		g.Expect(answer).To(Equal(component.OpenIDAnswer{Issuer: "https://elsewhere"}), "it is about another issuer")
		d.settled()
	})
	t.Run("When URLs are given it should only try a password", func(t *testing.T) {
		g := NewWithT(t)
		d := newDesk(t)
		q := Question{Name: "iam", Token: "https://t", ClientID: "me", Secret: "7"}
		_, _ = d.ask(q)
		d.settled()
		answer, _ := d.ask(q)
		g.Expect(answer).To(Equal(component.OpenIDAnswer{Token: "https://t", Challenge: true, Secret: "7"}))
		g.Expect(d.asker.asked).To(BeZero())
	})
	t.Run("When there is no way to an issuer it should say why", func(t *testing.T) {
		g := NewWithT(t)
		d := newDesk(t)
		out, again := d.book.Answers(t.Context(), []Question{question}, func() (Asker, error) { return nil, errors.New("no tunnel") })
		g.Expect(out["idp"].Problem).To(MatchError("no tunnel"))
		g.Expect(again).To(Equal(firstRetry))
	})
	t.Run("When a question is no longer asked it should be forgotten", func(t *testing.T) {
		g := NewWithT(t)
		d := newDesk(t)
		_, _ = d.ask(question)
		d.settled()
		_, _ = d.book.Answers(t.Context(), nil, nil)
		g.Expect(d.book.entries).To(BeEmpty())
	})
}
