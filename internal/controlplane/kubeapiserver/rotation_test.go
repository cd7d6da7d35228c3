package kubeapiserver

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func key(letter string) aesKey { return newKey([]byte(strings.Repeat(letter, aesKeySize))) }

func keys(letters string) []aesKey {
	var list []aesKey
	for _, letter := range letters {
		list = append(list, key(string(letter)))
	}
	return list
}

func letters(list []aesKey) string {
	var s strings.Builder
	for _, k := range list {
		s.WriteByte(k.data[0])
	}
	return s.String()
}

func TestRotation(t *testing.T) {
	for name, tc := range map[string]struct {
		live, want, known   string
		converged, migrated bool
		next                string
	}{
		"When nothing is encrypted yet it should write with the active key": {
			want: "a", next: "a",
		},
		"When there is a backup key from the start it should read with it": {
			want: "b", known: "a", next: "ba",
		},
		"When the key is already in use it should stay": {
			live: "ba", want: "b", next: "ba",
		},
		"When a key is new it should first be read everywhere": {
			live: "a", want: "b", converged: true, next: "ab",
		},
		"When some server may not have the new key it should not write with it": {
			live: "ab", want: "b", next: "ab",
		},
		"When every server has the new key it should write with it and still read with the old one": {
			live: "ab", want: "b", converged: true, next: "ba",
		},
		"When everything stored has the new key it should drop the old one": {
			live: "ba", want: "b", converged: true, migrated: true, next: "b",
		},
		"When the key changes back during a rotation it should not write with a key that is not everywhere": {
			live: "ba", want: "a", next: "ba",
		},
		"When the key that data needs is not in use any more it should be read again": {
			live: "b", want: "b", known: "a", next: "ba",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := rotation{live: keys(tc.live), want: key(tc.want), known: keys(tc.known), converged: tc.converged, migrated: tc.migrated}
			g.Expect(letters(r.order())).To(Equal(tc.next))
			g.Expect(letters(r.live)).To(Equal(tc.live), "the input must not change")
		})
	}
}

func TestRotationNeverBlinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Servers run configurations; the newest is rolled out one server at a time, while the wanted key changes at will.
		servers := [][]aesKey{nil, nil, nil}
		var live []aesKey
		written := map[string]bool{} // keys that something stored is encrypted with
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0: // the operator looks
				same := func(s []aesKey) bool { return letters(s) == letters(live) }
				all := !slices.ContainsFunc(servers, func(s []aesKey) bool { return !same(s) })
				want := key(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "want"))
				live = rotation{live: live, want: want, converged: all}.order()
			case 1: // a server is replaced
				servers[rapid.IntRange(0, 2).Draw(t, "server")] = live
			case 2: // a server writes, and all others read
				writer := servers[rapid.IntRange(0, 2).Draw(t, "writer")]
				if len(writer) == 0 {
					continue
				}
				written[writer[0].name] = true
			}
			for name := range written {
				for _, s := range servers {
					if len(s) > 0 && !slices.ContainsFunc(s, func(k aesKey) bool { return k.name == name }) {
						t.Fatalf("a server with keys %s cannot read %s", letters(s), name)
					}
				}
			}
		}
	})
}
