package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long answers of the API server count, and how many are kept. A right that is taken away is gone here after the time that a decision is known.
const (
	knowToken    = 60 * time.Second
	knowNobody   = 5 * time.Second // a refused token may be good in a moment, as with a new issuer
	knowDecision = 30 * time.Second
	maxTokens    = 1000
	maxRefused   = 1000
	maxDecisions = 50_000
	// maxAsking bounds requests to the API server at a time, reviewTime each of them. maxStrangers of them are about tokens that were not known before, so
	// that who sends such ones doesn't keep others waiting.
	maxAsking    = 50
	maxStrangers = maxAsking / 2
	reviewTime   = 10 * time.Second
)

// Tokens is the gate of a console in a cluster. Make it with NewTokens.
type Tokens struct {
	client client.Client
	config *rest.Config
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	clock  clock.PassiveClock
	// asking and strangers hold who asks the API server.
	asking, strangers chan struct{}
	sources           *Buckets // of tokens that were not known before

	mu sync.Mutex
	// tokens are those of people, also when their time is over: they are then asked about anew, before those of strangers.
	tokens map[string]known
	// refused are until when tokens of nobody count as such.
	refused   map[string]time.Time
	decisions map[decision]verdict
}

// known is who a token is of.
type known struct {
	viewer *Viewer
	until  time.Time
}

// decision is what was asked about, verdict the answer.
type decision struct {
	viewer, verb, group, resource, namespace string
}

type verdict struct {
	allowed bool
	until   time.Time
}

// NewTokens makes a gate. c asks the API server who tokens are of, with the rights of system:auth-delegator; config, of which only address and authority
// are used, is how viewers' own requests reach it.
func NewTokens(c client.Client, config *rest.Config, now clock.PassiveClock) *Tokens {
	return &Tokens{client: c, config: rest.AnonymousClientConfig(config), scheme: c.Scheme(), mapper: c.RESTMapper(), clock: now,
		asking: make(chan struct{}, maxAsking), strangers: make(chan struct{}, maxStrangers), sources: NewBuckets(now),
		tokens: map[string]known{}, refused: map[string]time.Time{}, decisions: map[decision]verdict{}}
}

// Viewer asks who the token of a request is of.
func (t *Tokens) Viewer(r *http.Request) (*Viewer, error) {
	token := bearer(r)
	if token == "" {
		return nil, ErrNobody
	}
	sum := sha256.Sum256([]byte(token))
	id := hex.EncodeToString(sum[:16])
	t.mu.Lock()
	who, isKnown := t.tokens[id]
	refused := t.clock.Now().Before(t.refused[id])
	t.mu.Unlock()
	switch {
	case isKnown && !t.clock.Now().After(who.until):
		return who.viewer, nil
	case refused:
		return nil, ErrNobody
	case !isKnown && !t.sources.Take(sourceOf(r)):
		return nil, ErrTooMany
	}
	viewer, err := t.review(r.Context(), id, token, !isKnown)
	if err != nil {
		return nil, err
	}
	t.learn(id, viewer)
	if viewer == nil {
		return nil, ErrNobody
	}
	return viewer, nil
}

// learn remembers whose a token is; nil: nobody's. Tokens of nobody have a place of their own: there is no end of them.
func (t *Tokens) learn(id string, v *Viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v == nil {
		delete(t.tokens, id)
		makeRoom(t.refused, maxRefused)
		t.refused[id] = t.clock.Now().Add(knowNobody)
		return
	}
	delete(t.refused, id)
	if _, ok := t.tokens[id]; !ok {
		t.forgetOldest()
	}
	t.tokens[id] = known{v, t.clock.Now().Add(knowToken)}
}

// forgetOldest makes room for another token.
func (t *Tokens) forgetOldest() {
	if len(t.tokens) < maxTokens {
		return
	}
	oldest := ""
	for id, k := range t.tokens {
		if oldest == "" || k.until.Before(t.tokens[oldest].until) {
			oldest = id
		}
	}
	delete(t.tokens, oldest)
}

// review asks the API server; nil: it knows nobody with such a token. stranger: the token was not known before.
func (t *Tokens) review(ctx context.Context, id, token string, stranger bool) (*Viewer, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	if stranger {
		if err := enter(ctx, t.strangers); err != nil {
			return nil, err
		}
		defer leave(t.strangers)
	}
	if err := enter(ctx, t.asking); err != nil {
		return nil, err
	}
	defer leave(t.asking)
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := t.client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("asking who a token is of: %w", err)
	}
	user := review.Status.User
	if !review.Status.Authenticated || user.Username == "" {
		return nil, nil
	}
	config := rest.CopyConfig(t.config)
	config.BearerToken, config.UserAgent, config.QPS = token, "hypershift-console", -1
	own, err := client.NewWithWatch(config, client.Options{Scheme: t.scheme, Mapper: t.mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	subject := authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra}
	return &Viewer{Name: user.Username, ID: id, Client: own, Writer: own, mayChange: func(ctx context.Context, what authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
		return t.mayChange(ctx, subject, what)
	}, may: func(ctx context.Context, verb string, resource Resource, namespace string) (bool, error) {
		return t.may(ctx, id, subject, verb, resource, namespace)
	}}, nil
}

func (t *Tokens) mayChange(ctx context.Context, subject authorizationv1.SubjectAccessReviewSpec, what authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	if err := enter(ctx, t.asking); err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	defer leave(t.asking)
	subject.ResourceAttributes = &what
	review := &authorizationv1.SubjectAccessReview{Spec: subject}
	err := t.client.Create(ctx, review)
	return review.Status, err
}

func (t *Tokens) may(ctx context.Context, id string, subject authorizationv1.SubjectAccessReviewSpec, verb string, resource Resource, namespace string) (bool, error) {
	key := decision{id, verb, resource.Group, resource.Name, namespace}
	t.mu.Lock()
	known, ok := t.decisions[key]
	t.mu.Unlock()
	if ok && t.clock.Now().Before(known.until) {
		return known.allowed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	if err := enter(ctx, t.asking); err != nil {
		return false, err
	}
	defer leave(t.asking)
	subject.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Resource: resource.Name, Namespace: namespace}
	review := &authorizationv1.SubjectAccessReview{Spec: subject}
	if err := t.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether %s may %s %s: %w", subject.User, verb, resource, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	makeRoom(t.decisions, maxDecisions)
	t.decisions[key] = verdict{review.Status.Allowed, t.clock.Now().Add(knowDecision)}
	return review.Status.Allowed, nil
}

// enter takes a place among those who ask.
func enter(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for other questions about rights: %w", ctx.Err())
	}
}

func leave(places <-chan struct{}) { <-places }
