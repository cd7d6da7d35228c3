package render

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestConditionMappings(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"When a destination is a type that a status accepts it should be taken": {text: "Ready => example.com/Ready\nAvailable => example.com/web-Available"},
		"When a destination has an upper case prefix it should be refused": {
			"Ready => Example.com/Ready", `destinationType "Example.com/Ready" in line 1 can't be the type of a condition: write a domain in lower case, one slash and a name`},
		"When a destination has two slashes it should be refused": {
			"Ready => example.com/Ready\nAvailable => example.com/web/Available", `destinationType "example.com/web/Available" in line 2 can't be the type of a condition`},
		"When a destination is longer than a status takes it should be refused": {
			"Ready => example.com/" + strings.Repeat("a", 400), "at most 316 characters"},
		"When a destination has no prefix it should be refused": {"Ready => Ready", "must have a prefix, as in example.com/Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := conditionMappings(tc.text)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(got).To(HaveLen(2))
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(len(err.Error())).To(BeNumerically("<", 600), "the message stays short")
		})
	}
}
