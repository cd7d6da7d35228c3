package rolls

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestNext(t *testing.T) {
	first, _ := Next(Note{}, false, "a", map[string]string{"release": "1", "x": "1"}, noon)
	for name, tc := range map[string]struct {
		hash    string
		inputs  map[string]string
		changed bool
		want    []string
	}{
		"When the hash is the same it should say nothing new":   {"a", map[string]string{"release": "2"}, false, nil},
		"When an input changes it should say from what to what": {"b", map[string]string{"release": "2", "x": "1"}, true, []string{"release: 1 → 2"}},
		"When inputs come and go it should say so":              {"b", map[string]string{"release": "1", "y": "7"}, true, []string{"x: removed (was 1)", "y: added (7)"}},
		"When the hash alone differs it should have no inputs":  {"b", map[string]string{"release": "1", "x": "1"}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n, changed := Next(first, true, tc.hash, tc.inputs, noon.Add(time.Hour))
			g.Expect(changed).To(Equal(tc.changed))
			if changed {
				g.Expect(n.Rolls).To(HaveLen(1))
				g.Expect(n.Rolls[0].Changes).To(Equal(tc.want))
				g.Expect(n.Rolls[0].String()).To(ContainSubstring("a"))
			}
		})
	}
	t.Run("When it is written and read it should be the same, and bounded", rapid.MakeCheck(func(t *rapid.T) {
		n := Note{}
		for i := range rapid.IntRange(1, 12).Draw(t, "rolls") {
			inputs := map[string]string{}
			for j := range rapid.IntRange(0, 150).Draw(t, "inputs") {
				inputs[fmt.Sprint(j, strings.Repeat("ä", rapid.IntRange(0, 100).Draw(t, "key")))] = strings.Repeat("b", rapid.IntRange(0, 200).Draw(t, "value"))
			}
			n, _ = Next(n, i > 0, fmt.Sprint("hash", i), inputs, noon.Add(time.Duration(i)*time.Hour))
		}
		text, err := n.Text()
		if err != nil || len(text) > maxNote {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		again, ok := Parse(text)
		if back, _ := again.Text(); !ok || back != text {
			t.Fatal("reading it gives another note")
		}
	}))
	t.Run("When the text is none it should not be known", func(t *testing.T) {
		for _, text := range []string{"", "x", "{}", strings.Repeat("x", 1<<20)} {
			_, ok := Parse(text)
			NewWithT(t).Expect(ok).To(BeFalse())
		}
	})
}
