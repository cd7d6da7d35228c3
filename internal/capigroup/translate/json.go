package translate

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

type class uint8

const (
	classQuote class = iota + 1
	classOpen
	classClose
)

var classes = [256]class{'"': classQuote, '{': classOpen, '[': classOpen, '}': classClose, ']': classClose}

func endsScalar(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// ones times a byte is that byte eight times.
const ones = 0x0101010101010101

// skipString returns the index behind the closing quote of the string that src[i:] continues, or len(src) and false.
func (x *Translator) skipString(src []byte, i int) (end int, ok bool) {
	if x.escaped && i < len(src) {
		x.escaped = false
		i++
	}
	// Most strings are short, and looking at eight bytes at once is then cheaper than a call.
	for stop := i + 64; i < stop && i+8 <= len(src); i += 8 {
		word := binary.LittleEndian.Uint64(src[i:])
		// A byte of m has its highest bit set where word has a quote or a backslash. Bytes behind the first such one may be wrong.
		quote, back := word^('"'*ones), word^('\\'*ones)
		m := ((quote-ones)&^quote | (back-ones)&^back) & (0x80 * ones)
		if m == 0 {
			continue
		}
		i += bits.TrailingZeros64(m) / 8
		if src[i] == '"' {
			return i + 1, true
		}
		break
	}
	return x.skipEscaped(src, i)
}

func (x *Translator) skipEscaped(src []byte, i int) (end int, ok bool) {
	for i < len(src) {
		quote := bytes.IndexByte(src[i:], '"')
		stop := len(src)
		if quote >= 0 {
			stop = i + quote
		}
		back := bytes.IndexByte(src[i:stop], '\\')
		if back < 0 {
			if quote < 0 {
				return len(src), false
			}
			return stop + 1, true
		}
		x.slashed = true
		i += back + 2
		if i > len(src) {
			x.escaped = true
			return len(src), false
		}
	}
	return len(src), false
}

// unescape is the text of a string's raw bytes: the bytes themselves, if nothing is escaped. What is no valid escape stays as it is.
func unescape(raw []byte) []byte {
	at := bytes.IndexByte(raw, '\\')
	if at < 0 {
		return raw
	}
	out := append(make([]byte, 0, len(raw)), raw[:at]...)
	for i := at; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r := hex4(raw[i+1:])
			if r < 0 {
				out = append(out, '\\', 'u')
				continue
			}
			i += 4
			if utf16.IsSurrogate(r) && i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(raw[i+3:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return out
}

func hex4(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	var r rune
	for _, c := range s[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// appendEscaped appends a name as the inside of a JSON string.
func appendEscaped(dst, name []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range name {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// unquote is the text of a JSON string; nil if raw is none.
func unquote(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil
	}
	return unescape(raw[1 : len(raw)-1])
}

// find returns the raw value at a path of keys in an object; of a key that occurs twice the last. Nil if there is none, or for what is not JSON.
func find(raw []byte, path ...string) []byte {
	for _, key := range path {
		var value []byte
		members(raw, func(k, v []byte) {
			if string(unquote(k)) == key {
				value = v
			}
		})
		if value == nil {
			return nil
		}
		raw = value
	}
	return raw
}

// members calls visit with each raw key and value of an object, and stops quietly where it is not JSON.
func members(raw []byte, visit func(key, value []byte)) {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return
	}
	for i = space(raw, i+1); i < len(raw) && raw[i] == '"'; {
		end := valueEnd(raw, i)
		if end < 0 {
			return
		}
		key := raw[i:end]
		if i = space(raw, end); i >= len(raw) || raw[i] != ':' {
			return
		}
		i = space(raw, i+1)
		if end = valueEnd(raw, i); end < 0 {
			return
		}
		visit(key, raw[i:end])
		if i = space(raw, end); i >= len(raw) || raw[i] != ',' {
			return
		}
		i = space(raw, i+1)
	}
}

// elements are the raw values of an array, as far as it is JSON.
func elements(raw []byte) (out [][]byte) {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '[' {
		return nil
	}
	for i = space(raw, i+1); i < len(raw) && raw[i] != ']'; {
		end := valueEnd(raw, i)
		if end < 0 {
			return out
		}
		out = append(out, raw[i:end])
		if i = space(raw, end); i >= len(raw) || raw[i] != ',' {
			return out
		}
		i = space(raw, i+1)
	}
	return out
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// valueEnd is the index behind the value at raw[i], or -1.
func valueEnd(raw []byte, i int) int {
	var x Translator
	depth := 0
	for start := i; i < len(raw); {
		switch classes[raw[i]] {
		case classQuote:
			end, ok := x.skipString(raw, i+1)
			if !ok {
				return -1
			}
			i = end
		case classOpen:
			depth++
			i++
		case classClose:
			if depth--; depth < 0 {
				return -1
			}
			i++
		default:
			if depth == 0 {
				for i < len(raw) && !endsScalar(raw[i]) && raw[i] != ':' {
					i++
				}
				if i == start {
					return -1
				}
				return i
			}
			i++
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}
