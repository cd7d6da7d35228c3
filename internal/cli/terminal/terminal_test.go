package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestWriter(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"When a message is plain it should stay":                           {in: "a\tb: größer, 日本\n", want: "a\tb: größer, 日本\n"},
		"When a message sets colours it should be shown as text":           {in: "\x1b[31mok\x1b[0m\n", want: "^[[31mok^[[0m\n"},
		"When a message writes over its line it should not":                {in: "False\rTrue \b\n", want: "False^MTrue ^H\n"},
		"When a message has the short form of an escape it should not act": {in: "\u009b2J", want: "\uFFFD2J"},
		"When a message turns the direction it should not":                 {in: "a\u202eb", want: "a\uFFFDb"},
		"When a message is no text its bytes should be replaced":           {in: "a\xffb", want: "a\uFFFDb"},
		"When a message deletes it should be shown":                        {in: "a\x7f", want: "a^?"},
	} {
		t.Run(name, func(t *testing.T) {
			g, out := NewWithT(t), &bytes.Buffer{}
			n, err := (&Writer{to: out}).Write([]byte(tc.in))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(n).To(Equal(len(tc.in)))
			g.Expect(out.String()).To(Equal(tc.want))
		})
	}
}

func TestWriterProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := []byte(rapid.String().Draw(rt, "text"))
		whole, pieces := &bytes.Buffer{}, &bytes.Buffer{}
		_, _ = (&Writer{to: whole}).Write(text)
		w := &Writer{to: pieces}
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "bytes")
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
		}
		if whole.String() != pieces.String() {
			rt.Fatalf("%q in pieces is %q", whole, pieces)
		}
		for _, r := range whole.String() {
			if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
				rt.Fatalf("%q is left in %q", r, whole)
			}
		}
	})
}

func TestOutput(t *testing.T) {
	t.Run("When the output is a file it should get all bytes as they are", func(t *testing.T) {
		g := NewWithT(t)
		f, err := os.Create(filepath.Join(t.TempDir(), "out"))
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = f.Close() })
		g.Expect(Output(f)).To(BeIdenticalTo(f))
		g.Expect(Rewritable(f)).To(BeFalse())
	})
	t.Run("When the output is a terminal a child should get it itself, and only a command clear its line", func(t *testing.T) {
		g := NewWithT(t)
		out, f := &bytes.Buffer{}, os.Stdin
		w := &Writer{to: out, file: f}
		g.Expect(File(w)).To(BeIdenticalTo(f))
		g.Expect(File(out)).To(BeIdenticalTo(out))
		ClearLine(w)
		g.Expect(w.Write([]byte(clearLine))).To(Equal(len(clearLine)))
		g.Expect(out.String()).To(Equal(clearLine + "^M^[[K"))
	})
}
