package clip_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/clip"
)

func TestLine(t *testing.T) {
	t.Run("When a message would steer a terminal it should be plain, on one line and short", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(clip.Line("a\n\tb \x1b[31mred")).To(Equal("a b \uFFFD[31mred"))
		g.Expect(len(clip.Line(strings.Repeat("ä", 10_000)))).To(BeNumerically("<", 310))
	})
}
