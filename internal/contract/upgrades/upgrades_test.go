package upgrades_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/contract/upgrades"
)

func TestNote(t *testing.T) {
	t.Run("When a note is written it should be read as it was", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := NewWithT(t)
			n := upgrades.Note{From: rapid.StringMatching(`[a-z/.:@]{1,40}`).Draw(t, "from"), FromVersion: "1.36.4", ToVersion: "1.36.3", At: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 0).UTC(),
				Why: rapid.StringN(0, 100, 300).Draw(t, "why")}
			n.To = n.From + "x"
			n.Why = strings.ToValidUTF8(n.Why, "")
			text, err := n.Text()
			g.Expect(err).NotTo(HaveOccurred())
			again, err := upgrades.ParseNote(text)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(n))
		})
	})
	t.Run("When it is no note it should be refused", func(t *testing.T) {
		for _, text := range []string{"", "x", "{}", `{"from":"a"}`, `{"from":"a","to":"a"}`, `{"from":"` + strings.Repeat("a", 5000) + `","to":"b"}`} {
			_, err := upgrades.ParseNote(text)
			NewWithT(t).Expect(err).To(HaveOccurred(), text)
		}
	})
}

func TestPatience(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		want  time.Duration
		wrong bool
	}{
		"When it is absent it should be off":         {"", 0, false},
		"When it is false it should be off":          {"false", 0, false},
		"When it is true it should be ten minutes":   {"true", 10 * time.Minute, false},
		"When it is a duration it should be that":    {"30m", 30 * time.Minute, false},
		"When it is too short it should be refused":  {"1s", 0, true},
		"When it is too long it should be refused":   {"48h", 0, true},
		"When it means nothing it should be refused": {"yes", 0, true},
		"When it is negative it should be refused":   {"-5m", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := upgrades.Patience(tc.value)
			g.Expect(err != nil).To(Equal(tc.wrong))
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
