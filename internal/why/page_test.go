package why

import (
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	pageFile  = "../../docs/why.md"
	pageBegin = "<!-- rules: written by UPDATE=true go test ./internal/why -run TestPage -->"
	pageEnd   = "<!-- end of rules -->"
)

// page is the part of docs/why.md that is made of the rules.
func page() string {
	var b strings.Builder
	for _, id := range IDs() {
		fmt.Fprintf(&b, "\n### %s\n\n", id)
		for i := range rules {
			if r := &rules[i]; r.ID == id {
				fmt.Fprintf(&b, "- **%s**: %s.%s\n", r.On, r.symptom(), r.ending())
			}
		}
		for i := range texts {
			if t := &texts[i]; t.ID == id {
				fmt.Fprintf(&b, "- Any condition with an error that matches `%s`.%s\n", t.Says, ending(t.State, t.Do))
			}
		}
		switch id {
		case "not-found":
			b.WriteString("- There is no such object.\n")
		case "unreadable":
			b.WriteString("- The object could not be read, as its API server does not answer or refuses.\n")
		}
	}
	return b.String()
}

func (r *Rule) symptom() string {
	text := r.Sees
	if r.See == nil {
		text = fmt.Sprintf("`%s` is %s", r.Condition, r.Is)
		if len(r.Reasons) > 0 {
			text += " with reason " + strings.Join(r.Reasons, ", ")
		}
		if r.Says != nil && r.Says.String() != "." {
			text += fmt.Sprintf(" and its message matches `%s`", r.Says)
		}
	}
	if r.While == dying {
		text = "while it is being deleted, " + strings.TrimPrefix(text, "it is being deleted")
		text = strings.TrimSuffix(text, ", ")
	}
	return text
}

func (r *Rule) ending() string {
	if r.Leads {
		return ""
	}
	text := ending(r.State, r.Do)
	if r.Late > 0 {
		text += fmt.Sprintf(" After %d minutes someone has to act.", int(r.Late.Minutes()))
	}
	if r.Young != nil {
		text += " While it is coming up, it resolves itself."
	}
	return text
}

func ending(s State, do string) string {
	heals := map[State]string{Waiting: "It resolves itself.", Held: "Someone wants it this way.", Broken: "Someone has to act."}[s]
	return fmt.Sprintf(" %s *Do*: %s.", heals, strings.TrimSuffix(do, "."))
}

func TestPage(t *testing.T) {
	t.Run("When the page is compared with the rules it should have an entry for each", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := os.ReadFile(pageFile)
		g.Expect(err).NotTo(HaveOccurred())
		before, rest, ok := strings.Cut(string(raw), pageBegin)
		g.Expect(ok).To(BeTrue(), "docs/why.md has no line %s", pageBegin)
		_, after, ok := strings.Cut(rest, pageEnd)
		g.Expect(ok).To(BeTrue(), "docs/why.md has no line %s", pageEnd)
		want := before + pageBegin + "\n" + page() + "\n" + pageEnd + after
		if os.Getenv("UPDATE") == "true" {
			g.Expect(os.WriteFile(pageFile, []byte(want), 0o644)).To(Succeed())
			return
		}
		g.Expect(string(raw)).To(Equal(want), "docs/why.md is behind the rules: UPDATE=true go test ./internal/why -run TestPage")
	})
	t.Run("When a rule is written it should say what it sees, what to do and how it stands", func(t *testing.T) {
		for i := range rules {
			r := &rules[i]
			g := NewWithT(t)
			g.Expect(r.See == nil).To(Equal(r.Sees == ""), r.ID)
			g.Expect(r.See == nil).To(Equal(r.Condition != ""), r.ID)
			g.Expect(r.Do != "" && r.State != "").To(Equal(!r.Leads), r.ID)
			g.Expect(r.Leads && len(r.Ask) == 0).To(BeFalse(), "%s leads nowhere", r.ID)
		}
	})
}
