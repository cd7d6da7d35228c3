package clip

import (
	"strings"
	"unicode"
)

// maxLine bounds what Line leaves of a text, in bytes.
const maxLine = 300

// Line is a text as one line of at most some 300 bytes, without what could steer a terminal: anybody may write messages of machines and packages.
func Line(text string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, To(text, 4*maxLine)) // spaces are dropped below
	return Over(strings.Join(strings.Fields(plain), " "), maxLine, "…")
}
