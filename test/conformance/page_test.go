package conformance

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	page    = "../../docs/conformance.md"
	results = "../../docs/conformance.xml"
	begin   = "<!-- results: written by UPDATE=true go test ./test/conformance -run TestPage -->\n"
	end     = "<!-- end of results -->\n"
)

func TestPage(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("reasons.tsv")
	g.Expect(err).NotTo(HaveOccurred())
	reasons, err := ParseReasons(data)
	g.Expect(err).NotTo(HaveOccurred())
	cases, err := Read(results)
	g.Expect(err).NotTo(HaveOccurred())
	t.Run("When a spec failed it should have a reason", func(t *testing.T) {
		NewWithT(t).Expect(Unexplained(cases, reasons)).To(BeEmpty(), "write a line into reasons.tsv, or mend it")
	})
	t.Run("When there is a reason it should be that of a spec which failed or was not run", func(t *testing.T) {
		g := NewWithT(t)
		byName := map[string]Case{}
		for _, c := range cases {
			byName[c.Name] = c
		}
		for name := range reasons {
			c, ok := byName[name]
			g.Expect(ok).To(BeTrue(), "reasons.tsv has %q, which is no spec of %s", name, results)
			g.Expect(c.Failure+c.Skipped).NotTo(BeEmpty(), "reasons.tsv has %q, which passed: remove the line", name)
		}
	})
	t.Run("When results are known the page should tell them", func(t *testing.T) {
		g := NewWithT(t)
		text, err := os.ReadFile(page)
		g.Expect(err).NotTo(HaveOccurred())
		before, rest, ok := strings.Cut(string(text), begin)
		g.Expect(ok).To(BeTrue(), "%s lacks the line that begins the results", page)
		_, after, ok := strings.Cut(rest, end)
		g.Expect(ok).To(BeTrue(), "%s lacks the line that ends the results", page)
		want := before + begin + Markdown(cases, reasons) + end + after
		if os.Getenv("UPDATE") == "true" {
			g.Expect(os.WriteFile(page, []byte(want), 0o644)).To(Succeed())
			return
		}
		g.Expect(string(text)).To(Equal(want), "UPDATE=true go test ./test/conformance -run TestPage writes it anew")
	})
}
