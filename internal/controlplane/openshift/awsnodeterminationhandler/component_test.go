package awsnodeterminationhandler

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"https://issuer.example.com/a-b": "https://issuer.example.com/a-b",
		"":                               "''",
		"x; rm -r '/'":                   `'x; rm -r '\''/'\'''`,
	} {
		t.Run("When it is "+text+" it should be one word", func(t *testing.T) {
			NewWithT(t).Expect(shellWord(text)).To(Equal(want))
		})
	}
}
