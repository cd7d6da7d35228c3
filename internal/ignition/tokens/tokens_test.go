package tokens

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestStore(t *testing.T) {
	g := NewWithT(t)
	s := &Store{}
	_, ok := s.Lookup([]byte("a"), noon)
	g.Expect(ok).To(BeFalse(), "an empty store")
	first := &Payload{Secret: "s", Data: []byte("1")}
	s.Set(first, Token{"a", noon.Add(time.Hour)}, Token{"b", noon.Add(time.Minute)}, Token{Value: ""})
	g.Expect(s.Len()).To(Equal(2), "an empty token is none")
	got, ok := s.Lookup([]byte("b"), noon)
	g.Expect(ok).To(BeTrue())
	g.Expect(got).To(BeIdenticalTo(first))
	_, ok = s.Lookup([]byte("b"), noon.Add(time.Minute))
	g.Expect(ok).To(BeFalse(), "expired")
	_, ok = s.Lookup(make([]byte, MaxLength+1), noon)
	g.Expect(ok).To(BeFalse())

	s.Set(&Payload{Secret: "s"}, Token{"c", noon.Add(time.Hour)})
	_, ok = s.Lookup([]byte("a"), noon)
	g.Expect(ok).To(BeFalse(), "replaced")
	s.Set(&Payload{Secret: "other"}, Token{"c", noon.Add(time.Hour)})
	s.Delete("s")
	got, ok = s.Lookup([]byte("c"), noon)
	g.Expect(ok).To(BeTrue(), "taken over by another Secret")
	g.Expect(got.Secret).To(Equal("other"))
	s.Delete("other")
	g.Expect(s.Len()).To(BeZero())
	g.Expect(s.Payload("other")).To(BeNil())
}

// The store is compared with the plainest thing that could be one.
func TestStoreIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, model := &Store{}, map[string]string{} // token → secret
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				secret := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "secret")
				for token, of := range model {
					if of == secret {
						delete(model, token)
					}
				}
				var list []Token
				for _, token := range rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}), 0, 2).Draw(t, "tokens") {
					list, model[token] = append(list, Token{token, noon.Add(time.Hour)}), secret
				}
				s.Set(&Payload{Secret: secret}, list...)
			},
			"delete": func(t *rapid.T) {
				secret := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "secret")
				for token, of := range model {
					if of == secret {
						delete(model, token)
					}
				}
				s.Delete(secret)
			},
			"": func(t *rapid.T) {
				if s.Len() != len(model) {
					t.Fatalf("%d tokens, want %v", s.Len(), model)
				}
				for token, secret := range model {
					if p, ok := s.Lookup([]byte(token), noon); !ok || p.Secret != secret {
						t.Fatalf("token %s gives %v, want %s", token, p, secret)
					}
				}
			},
		})
	})
}

func TestStoreConcurrently(t *testing.T) {
	s := &Store{}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("s%d", n)
				s.Set(&Payload{Secret: name}, Token{fmt.Sprint(name, i), noon.Add(time.Hour)})
				if _, ok := s.Lookup([]byte(fmt.Sprint(name, i)), noon); !ok {
					t.Error("own token is not there")
				}
			}
		})
	}
	wg.Wait()
	NewWithT(t).Expect(s.Len()).To(Equal(8))
}
