// Package tokens remembers which token gives which payload.
//
// Only hashes of tokens are kept. Looking one up takes the same time for every token: it is hashed first, and nobody can choose a hash
// that shares its beginning with that of a token which they don't know.
package tokens

import (
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// MaxLength of a token in bytes. Ours have 36.
const MaxLength = 256

// Payload is what a token gives.
type Payload struct {
	// Secret is the name of the token Secret and NodePool that of the pool, as namespace/name.
	Secret, NodePool string
	// Data is JSON. It is shared: treat it as read-only.
	Data []byte
	// Invalid is true when Data is known to be no valid configuration: it must not be served.
	Invalid bool
}

// Token is a token in clear text until when it is good.
type Token struct {
	Value   string
	Expires time.Time
}

type digest [sha256.Size]byte

type entry struct {
	digest  digest
	payload *Payload
	expires time.Time
}

// Store may be used concurrently. Lookups never wait for changes. The zero Store is empty.
type Store struct {
	mu      sync.Mutex // for writers
	entries atomic.Pointer[map[digest]entry]
	secrets map[string][]digest
}

// Lookup returns the payload of a token that is good at now.
func (s *Store) Lookup(token []byte, now time.Time) (*Payload, bool) {
	sum := digest(sha256.Sum256(token))
	entries := s.entries.Load()
	if entries == nil || len(token) == 0 || len(token) > MaxLength {
		return nil, false
	}
	// The comparison repeats what the map has done, in constant time: how a map compares its keys is not promised.
	e, ok := (*entries)[sum]
	if !ok || subtle.ConstantTimeCompare(e.digest[:], sum[:]) != 1 || !now.Before(e.expires) {
		return nil, false
	}
	return e.payload, true
}

// Set makes these the only tokens of payload.Secret.
func (s *Store) Set(payload *Payload, list ...Token) {
	s.change(payload.Secret, func(all map[digest]entry) []digest {
		var own []digest
		for _, t := range list {
			if t.Value == "" || len(t.Value) > MaxLength {
				continue
			}
			sum := digest(sha256.Sum256([]byte(t.Value)))
			all[sum] = entry{digest: sum, payload: payload, expires: t.Expires}
			own = append(own, sum)
		}
		return own
	})
}

// Delete forgets the tokens of a Secret.
func (s *Store) Delete(secret string) {
	s.change(secret, func(map[digest]entry) []digest { return nil })
}

// Payload returns what the tokens of a Secret give, nil when it has none.
func (s *Store) Payload(secret string) *Payload {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.secrets[secret] {
		if e, ok := (*s.entries.Load())[d]; ok {
			return e.payload
		}
	}
	return nil
}

// Len is how many tokens there are, also expired ones.
func (s *Store) Len() int {
	if entries := s.entries.Load(); entries != nil {
		return len(*entries)
	}
	return 0
}

func (s *Store) change(secret string, do func(map[digest]entry) []digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[digest]entry{}
	if old := s.entries.Load(); old != nil {
		all = maps.Clone(*old)
	}
	for _, d := range s.secrets[secret] {
		// Another Secret may have taken the token over, for example one that was restored under another name.
		if all[d].payload != nil && all[d].payload.Secret == secret {
			delete(all, d)
		}
	}
	if s.secrets == nil {
		s.secrets = map[string][]digest{}
	}
	if own := do(all); len(own) > 0 {
		s.secrets[secret] = own
	} else {
		delete(s.secrets, secret)
	}
	s.entries.Store(&all)
}
