// Package clip shortens text to a number of bytes without leaving a part of a character at its end.
//
// Where a text is shown it would be a question mark in a diamond; where it is written, an API server refuses bytes that are not UTF-8, and gRPC and
// protobuf do as well.
package clip

import "unicode/utf8"

// To is the longest beginning of s that has at most limit bytes and does not end within a character. Bytes of s that are no UTF-8 stay as they are.
func To(s string, limit int) string {
	if len(s) <= max(limit, 0) {
		return s
	}
	end := max(limit, 0)
	// A character begins at most three bytes before the cut, else the bytes are no character.
	for start := end; start >= max(0, end-utf8.UTFMax+1); start-- {
		if utf8.RuneStart(s[start]) {
			if start != end && !utf8.FullRuneInString(s[start:end]) {
				return s[:start]
			}
			return s[:end]
		}
	}
	return s[:end]
}

// Over is s, or when it has more than limit bytes what To leaves of it, with mark behind it. The result may be longer than limit by the mark.
func Over(s string, limit int, mark string) string {
	if len(s) <= limit {
		return s
	}
	return To(s, limit) + mark
}
