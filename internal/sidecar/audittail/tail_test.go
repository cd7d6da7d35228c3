package audittail

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func follow(t *testing.T, path string) *buffer {
	t.Helper()
	out := &buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Tail{Path: path, Out: out, Interval: time.Millisecond}.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("following %s: %v", path, err)
		}
	})
	return out
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTail(t *testing.T) {
	t.Run("When the file appears after the start it should copy it from its first byte", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "audit.log")
		out := follow(t, path)
		appendTo(t, path, "one\ntwo\n")
		g.Eventually(out.String).WithTimeout(time.Minute).Should(Equal("one\ntwo\n"))
	})
	t.Run("When the file is rotated many times it should lose and repeat nothing", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "audit.log")
		out := follow(t, path)
		want := ""
		for i := range 20 {
			line := strings.Repeat(string(rune('a'+i)), 50_000) + "\n"
			appendTo(t, path, line)
			want += line
			g.Eventually(func() int { return len(out.String()) }).WithTimeout(time.Minute).Should(Equal(len(want)))
			g.Expect(os.Rename(path, path+".old")).To(Succeed())
			appendTo(t, path+".old", "late\n") // the writer still had the old file open
			want += "late\n"
			g.Eventually(func() int { return len(out.String()) }).WithTimeout(time.Minute).Should(Equal(len(want)))
		}
		g.Expect(out.String() == want).To(BeTrue())
	})
	t.Run("When the file is cut short in place it should go on from its start", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "audit.log")
		out := follow(t, path)
		appendTo(t, path, "a long first line\n")
		g.Eventually(out.String).WithTimeout(time.Minute).Should(ContainSubstring("first"))
		g.Expect(os.Truncate(path, 0)).To(Succeed())
		appendTo(t, path, "second\n") // the file stays shorter than it was, by which the cut is seen whenever somebody looks
		g.Eventually(out.String).WithTimeout(time.Minute).Should(Equal("a long first line\nsecond\n"))
	})
	t.Run("When the output is closed it should end with an error", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "audit.log")
		appendTo(t, path, "one\n")
		r, w, err := os.Pipe()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.Close()).To(Succeed())
		defer func() { _ = w.Close() }()
		g.Expect(Tail{Path: path, Out: w, Interval: time.Millisecond}.Run(t.Context())).To(MatchError(ContainSubstring("writing output")))
	})
}
