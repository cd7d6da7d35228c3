package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/clip"
)

func TestTo(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"When the text is short it should stay":                             {text: "abc", limit: 3, want: "abc"},
		"When the cut is between characters it should cut there":            {text: "äöü", limit: 4, want: "äö"},
		"When the cut is in a character it should leave that out":           {text: "äöü", limit: 3, want: "ä"},
		"When the cut is in a character of four bytes it should do so, too": {text: "a😀b", limit: 4, want: "a"},
		"When that one is the first nothing should be left":                 {text: "😀", limit: 3, want: ""},
		"When the limit is nothing it should be empty":                      {text: "abc", limit: 0, want: ""},
		"When the limit is below nothing it should be empty":                {text: "abc", limit: -1, want: ""},
		"When the bytes are no text they should be cut like any":            {text: "\x80\x80\x80\x80\x80\x80", limit: 5, want: "\x80\x80\x80\x80\x80"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(clip.To(tc.text, tc.limit)).To(Equal(tc.want)) })
	}
}

func TestToProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text, limit := rapid.String().Draw(rt, "text"), rapid.IntRange(-1, 40).Draw(rt, "limit")
		got := clip.To(text, limit)
		switch {
		case len(got) > max(limit, 0), !strings.HasPrefix(text, got):
			rt.Fatalf("%q is no beginning of at most %d bytes", got, limit)
		case !utf8.ValidString(got):
			rt.Fatalf("%q ends within a character", got)
		case len(text) > limit && limit-len(got) >= utf8.UTFMax:
			rt.Fatalf("%q is shorter than needed", got)
		case clip.To(got, limit) != got:
			rt.Fatal("cutting twice is not the same as cutting once")
		}
	})
}

func TestOver(t *testing.T) {
	g := NewWithT(t)
	g.Expect(clip.Over("äöü", 6, "…")).To(Equal("äöü"))
	g.Expect(clip.Over("äöü", 5, "…")).To(Equal("äö…"))
}
