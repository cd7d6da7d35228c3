package why

import (
	"strings"
	"unicode"

	"hcp.internal/platform/internal/controlplane/trouble"
)

// Clean makes a text of others fit to be shown: one line, bounded, without control characters and credentials.
func Clean(s string) string {
	return trouble.Clean(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return -1 // escape sequences of terminals, marks that turn the direction of writing
		}
		return r
	}, s))
}
