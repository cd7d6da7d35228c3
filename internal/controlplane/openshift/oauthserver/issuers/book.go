package issuers

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/controlplane/component"
)

const (
	// urlsFresh and challengeFresh are how long an answer is believed, as published. Each probe of a challenge is a login that fails, which is why it is rare.
	urlsFresh      = 10 * time.Minute
	challengeFresh = 7 * 24 * time.Hour
	// firstRetry and lastRetry bound the time until an issuer that did not answer is asked again.
	firstRetry = 15 * time.Second
	lastRetry  = 10 * time.Minute
	// asking is when a pass looks again at a question that is being asked.
	asking = time.Minute
	// maxAtOnce bounds the issuers that are asked at the same time.
	maxAtOnce = 4
	// maxLogged bounds what is logged of an error, which may hold text of others.
	maxLogged = 300
)

// Question is what is to be found out of an identity provider.
type Question struct {
	// Name of the provider.
	Name string
	// Issuer is asked for URLs; empty: Token is known.
	Issuer string
	// Token is the URL for tokens when Issuer is empty.
	Token string
	// ClientID and ClientSecret are the OAuth client's, Secret the version of the Secret that holds the password. An empty Secret: nobody wants to know the
	// challenge.
	ClientID, ClientSecret, Secret string
	// CA is the provider's authorities, PEM; empty: those of the system.
	CA []byte
	// Before is what an earlier process found out.
	Before component.OpenIDAnswer
}

// same says whether the answer to one question is the answer to another.
func (q Question) same(o Question) bool {
	return q.Issuer == o.Issuer && q.Token == o.Token && string(q.CA) == string(o.CA) && q.ClientID == o.ClientID && q.Secret == o.Secret
}

// Asker asks over a network.
type Asker interface {
	// URLs are the endpoints that the issuer of a question tells.
	URLs(ctx context.Context, q Question) (URLs, error)
	// Password says whether an endpoint for tokens takes passwords.
	Password(ctx context.Context, token string, q Question) (bool, error)
}

// Book keeps what is known of issuers, and has them asked in the background. The zero value with Clock is ready.
type Book struct {
	Clock clock.PassiveClock
	// Changed is called when a round found something else than was known; nil: nobody is told.
	Changed func(context.Context)

	mu      sync.Mutex
	entries map[string]*entry
	running int
}

// entry is one question and what is known.
type entry struct {
	question    Question
	answer      component.OpenIDAnswer
	urlsAt      time.Time // zero: not by this process
	challengeAt time.Time
	running     bool
	failures    int
	next        time.Time // after a failure
}

// Answers are what is known of the questions, by the provider's name, and when to ask for them again; 0: no need. What is missing or old is asked in
// the background, until ctx ends. path says how, or why not; it is called once a round and only then.
func (b *Book) Answers(ctx context.Context, questions []Question, path func() (Asker, error)) (map[string]component.OpenIDAnswer, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries == nil {
		b.entries = map[string]*entry{}
	}
	out, soon := map[string]component.OpenIDAnswer{}, time.Duration(0)
	for _, q := range questions {
		e := b.entries[q.Name]
		if e == nil || !e.question.same(q) {
			e = b.begin(q)
			b.entries[q.Name] = e
		}
		e.question.ClientSecret = q.ClientSecret
		if wait := b.ask(ctx, e, path); wait > 0 && (soon == 0 || wait < soon) {
			soon = wait
		}
		out[q.Name] = e.answer
	}
	maps.DeleteFunc(b.entries, func(name string, _ *entry) bool {
		return !slices.ContainsFunc(questions, func(q Question) bool { return q.Name == name })
	})
	return out, soon
}

// begin is the entry of a question that is new: what was known before holds, as far as it is about the same.
func (b *Book) begin(q Question) *entry {
	e := &entry{question: q, answer: component.OpenIDAnswer{Issuer: q.Issuer, Token: q.Token}}
	if before := q.Before; before.Token != "" && before.Issuer == q.Issuer && (q.Issuer != "" || before.Token == q.Token) {
		e.answer = before
		if before.Secret == q.Secret && q.Secret != "" {
			e.challengeAt = b.Clock.Now()
		}
	}
	return e
}

// ask starts a round if it is time for one, and says when to look again; 0: not before long.
func (b *Book) ask(ctx context.Context, e *entry, path func() (Asker, error)) time.Duration {
	now := b.Clock.Now()
	switch wantURLs, wantChallenge := e.wants(now); {
	case e.running:
		return asking
	case !wantURLs && !wantChallenge:
		return 0
	case now.Before(e.next):
		return e.next.Sub(now)
	case b.running >= maxAtOnce:
		return firstRetry
	}
	asker, err := path()
	if err != nil {
		e.fail(now, err)
		return e.next.Sub(now)
	}
	e.running = true
	b.running++
	go b.round(ctx, e, e.question, e.answer, asker)
	return asking
}

// wants says what is missing or old.
func (e *entry) wants(now time.Time) (urls, challenge bool) {
	urls = e.question.Issuer != "" && (e.urlsAt.IsZero() || now.Sub(e.urlsAt) >= urlsFresh)
	challenge = e.question.Secret != "" && (e.challengeAt.IsZero() || now.Sub(e.challengeAt) >= challengeFresh)
	return urls, challenge
}

func (e *entry) fail(now time.Time, err error) {
	e.answer.Problem = err
	e.next = now.Add(min(firstRetry<<min(e.failures, 10), lastRetry))
	e.failures++
}

// round asks. The entry may be another one's by the end of it.
func (b *Book) round(ctx context.Context, e *entry, q Question, known component.OpenIDAnswer, asker Asker) {
	b.mu.Lock()
	wantURLs, wantChallenge := e.wants(b.Clock.Now())
	b.mu.Unlock()
	found, err := known, error(nil)
	found.Problem = nil
	if wantURLs {
		var urls URLs
		if urls, err = asker.URLs(ctx, q); err == nil {
			wantChallenge = wantChallenge || urls.Token != known.Token // it was about another endpoint
			found.Issuer, found.Authorize, found.Token, found.UserInfo = q.Issuer, urls.Authorize, urls.Token, urls.UserInfo
		}
	}
	gotURLs, gotChallenge := wantURLs && err == nil, false
	if err == nil && wantChallenge && q.Secret != "" {
		var yes bool
		if yes, err = asker.Password(ctx, found.Token, q); err == nil {
			found.Challenge, found.Secret, gotChallenge = yes, q.Secret, true
		}
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		ctrl.Log.WithName("issuers").Info("an issuer could not be asked", "provider", q.Name, "reason", clip.To(err.Error(), maxLogged))
	}
	if b.note(e, found, err, gotURLs, gotChallenge) && b.Changed != nil {
		b.Changed(ctx)
	}
}

// note keeps what a round found, and says whether it differs from what was known.
func (b *Book) note(e *entry, found component.OpenIDAnswer, err error, gotURLs, gotChallenge bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, before := b.Clock.Now(), e.answer
	e.running, e.answer = false, found
	b.running--
	if gotURLs {
		e.urlsAt = now
	}
	if gotChallenge {
		e.challengeAt = now
	}
	if err != nil {
		e.fail(now, told(e.question, err))
	} else {
		e.failures, e.next = 0, time.Time{}
	}
	return text(before.Problem) != text(e.answer.Problem) || !sameAnswer(before, e.answer)
}

func sameAnswer(a, b component.OpenIDAnswer) bool {
	a.Problem, b.Problem = nil, nil
	return a == b
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
