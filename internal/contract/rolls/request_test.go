package rolls

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestUnrequested(t *testing.T) {
	asked := Request{Spec: "s1", Generation: "1.1", Content: "c1"}
	made := Note{Hash: "a", Request: &asked, Asked: noon}
	held := made
	held.Held = "b"
	later := noon.Add(time.Hour)
	for name, tc := range map[string]struct {
		note    Note
		known   bool
		hash    string
		asked   Request
		allowed string
		now     time.Time
		want    bool
	}{
		"When the operator alone makes other machines it should be held":                {made, true, "b", asked, "", later, true},
		"When nothing is known of before it should go":                                  {Note{}, false, "b", asked, "", later, false},
		"When an older operator noted no request it should go":                          {Note{Hash: "a"}, true, "b", asked, "", later, false},
		"When machines are the same there should be nothing to hold":                    {made, true, "a", asked, "", later, false},
		"When it is allowed by its hash it should go":                                   {held, true, "b", asked, "b", later, false},
		"When another hash is allowed it should be held":                                {made, true, "b", asked, "c", later, true},
		"When a spec was changed it should go":                                          {made, true, "b", Request{"s2", "2.1", "c1"}, "", later, false},
		"When a field got a default without anybody writing it should be held":          {made, true, "b", Request{"s2", "1.1", "c1"}, "", later, true},
		"When only the number of machines was changed it should be held":                {made, true, "b", Request{"s1", "1.2", "c1"}, "", later, true},
		"When a ConfigMap has other content it should go":                               {made, true, "b", Request{"s1", "1.1", "c2"}, "", later, false},
		"When it is held and a spec changes that is no matter of machines it should be": {held, true, "b", Request{"s2", "2.1", "c1"}, "", later, true},
		"When it follows from a request a little later it should go":                    {made, true, "b", asked, "", noon.Add(Settle - time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.note.Unrequested(tc.known, tc.hash, tc.asked, tc.allowed, tc.now)).To(Equal(tc.want))
		})
	}
	t.Run("When users and operators change things in any order machines should follow users alone", rapid.MakeCheck(inAnyOrder))
}

// inAnyOrder plays changes one after the other, each with passes, against machines that are a function of what is asked for and of the operator.
func inAnyOrder(t *rapid.T) {
	var note Note
	known, now := false, noon
	relevant, rest, operator, allowed := 0, 0, 0, ""
	generation := 1
	hash := func() string { return fmt.Sprint(relevant, "/", operator) }
	pass := func() {
		asked := Request{Spec: fmt.Sprint(relevant, rest), Generation: fmt.Sprint(generation), Content: "c"}
		if note.Unrequested(known, hash(), asked, allowed, now) {
			note, _ = note.Noting(asked, hash(), now)
			return
		}
		note, _ = Next(note, known, hash(), nil, now)
		note, _ = note.Noting(asked, "", now)
		known = true
	}
	pass()
	for range rapid.IntRange(1, 30).Draw(t, "changes") {
		now = now.Add(Settle + time.Minute)
		before := note.Hash
		follows := false
		switch rapid.SampledFrom([]string{"operator", "relevant", "rest", "allow", "nothing"}).Draw(t, "change") {
		case "operator":
			operator = rapid.IntRange(0, 3).Draw(t, "operator")
		case "relevant":
			relevant, generation, follows = relevant+1, generation+1, true
		case "rest":
			rest, generation = rest+1, generation+1
		case "allow":
			allowed, follows = hash(), true
		}
		for range rapid.IntRange(1, 3).Draw(t, "passes") {
			pass()
		}
		switch {
		case follows && note.Hash != hash():
			t.Fatalf("machines are %s, and %s was asked for", note.Hash, hash())
		case !follows && note.Hash != before && hash() != allowed:
			t.Fatalf("machines went from %s to %s, and nobody asked for it", before, note.Hash)
		case note.Hash == hash() && note.Held != "":
			t.Fatalf("%s is held, and there is nothing to hold", note.Held)
		}
		asked := Request{Spec: fmt.Sprint(relevant, rest), Generation: fmt.Sprint(generation), Content: "c"}
		if _, again := note.Noting(asked, note.Held, now); again {
			t.Fatal("a pass that changes nothing writes")
		}
	}
}
