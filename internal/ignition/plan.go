package ignition

import (
	"bytes"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tokens"
)

// retryInputs is after what time a payload is tried again that waits for something which has no event here, such as a registry.
const retryInputs = 10 * time.Second

// Observed is everything that the plan of a token Secret may look at.
type Observed struct {
	Secret *corev1.Secret
	// Data is the payload, and Err why there is none.
	Data []byte
	Err  error
}

// Plan says what to do with a token Secret. The zero Plan serves nothing and changes nothing.
type Plan struct {
	// Delete the Secret: its time has come.
	Delete bool
	// Tokens that give the payload once Changed is stored.
	Tokens []tokens.Token
	// Before are those that give it when Changed could not be stored.
	Before []tokens.Token
	// Changed is the Secret as it is to be, nil when it is that already.
	Changed *corev1.Secret
	// Rotated is true when Changed has a new token.
	Rotated bool
	// RecheckAfter is when something changes by itself.
	RecheckAfter time.Duration
}

// planFor never takes a token away before its time, never makes more than two good ones, and plans nothing more once Changed is
// stored. newToken is called only for a new token.
func planFor(obs Observed, now time.Time, newToken func() string) Plan {
	s := obs.Secret
	expires, ends := expiration(s)
	if ends && !now.Before(expires) {
		return Plan{Delete: true}
	}
	next := s.DeepCopy()
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	p := Plan{}
	born, known := generated(s, now)
	p.Before = good(s, born, expires, ends, now)
	if !ends && (!known || len(s.Data[token.TokenKey]) == 0 || now.Sub(born) >= tokenRotation) {
		rotate(next, now, newToken)
		born, p.Rotated = now, true
	}
	report(next, obs)
	p.Tokens = good(next, born, expires, ends, now)
	p.RecheckAfter = recheck(born, expires, ends, now, obs.Err)
	if p.Rotated || !sameData(s, next) {
		p.Changed = next
	}
	return p
}

// expiration is when the Secret is to be deleted, if ever. What cannot be read counts as past, so that a token never outlives a typo.
func expiration(s *corev1.Secret) (at time.Time, ends bool) {
	text, ok := s.Annotations[hyperv1.TokenSecretExpirationTimestampAnnotation]
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, true
	}
	return at, true
}

// maxSkew is how far ahead the clock of who made the token may be.
const maxSkew = 10 * time.Minute

// generated is when the token was made; never later than now, for a token must not live longer because a clock was wrong.
func generated(s *corev1.Secret, now time.Time) (at time.Time, known bool) {
	at, err := time.Parse(time.RFC3339Nano, s.Annotations[hyperv1.TokenSecretTokenGenerationTimeAnnotation])
	if err != nil || at.After(now.Add(maxSkew)) {
		return time.Time{}, false
	}
	if at.After(now) {
		return now, true
	}
	return at, true
}

// rotate makes the token the old one.
func rotate(s *corev1.Secret, now time.Time, newToken func() string) {
	if len(s.Data[token.TokenKey]) > 0 {
		s.Data[token.OldTokenKey] = s.Data[token.TokenKey]
	}
	s.Data[token.TokenKey] = []byte(newToken())
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, hyperv1.TokenSecretTokenGenerationTimeAnnotation, now.UTC().Format(time.RFC3339Nano))
}

// good are the tokens that may be used, with their ends. The old one has as long as a token had left when it was replaced in time; so
// one that was replaced late, after this program had been down, still gives its machines that time.
func good(s *corev1.Secret, born, expires time.Time, ends bool, now time.Time) []tokens.Token {
	end := func(at time.Time) time.Time {
		if ends && expires.Before(at) {
			return expires
		}
		return at
	}
	if ends && born.IsZero() {
		born = now // nobody knows how old it is, and the Secret ends soon
	}
	var list []tokens.Token
	for _, t := range []tokens.Token{
		{Value: string(s.Data[token.TokenKey]), Expires: end(born.Add(tokenTTL))},
		{Value: string(s.Data[token.OldTokenKey]), Expires: end(born.Add(tokenTTL - tokenRotation))},
	} {
		if t.Value != "" && now.Before(t.Expires) {
			list = append(list, t)
		}
	}
	return list
}

func recheck(born, expires time.Time, ends bool, now time.Time, err error) time.Duration {
	after := max(born.Add(tokenRotation).Sub(now), time.Second)
	if ends {
		after = max(expires.Sub(now), time.Second)
	}
	var invalid *payload.InvalidError
	if err != nil && !errors.As(err, &invalid) {
		after = min(after, retryInputs)
	}
	return min(after, tokenRotation)
}

// lastGood is the payload that was stored, nil when there is none. A process that has just started serves it while what payloads are made of can't be
// read, so that machines are made also while a registry is down.
func lastGood(s *corev1.Secret) []byte {
	for _, key := range []string{keyLast, token.PayloadKey} {
		if stored, err := decodeConfig(s.Data[key]); err == nil && stored != "" {
			return []byte(stored)
		}
	}
	return nil
}

func sameData(a, b *corev1.Secret) bool {
	if len(a.Data) != len(b.Data) {
		return false
	}
	for key, value := range b.Data {
		have, ok := a.Data[key]
		if !ok || !bytes.Equal(have, value) {
			return false
		}
	}
	return true
}

func invalid(err error) bool {
	var i *payload.InvalidError
	return errors.As(err, &i)
}
