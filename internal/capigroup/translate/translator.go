package translate

import (
	"bytes"
	"errors"
)

const (
	// maxDepth is how deep objects and arrays may nest. Nothing that Kubernetes serves comes near.
	maxDepth = 512
	// maxName is the longest string that can be a renamed name; longer ones pass as they are.
	maxName = 512
	// maxSentence is the longest text that is searched for groups; longer ones pass as they are.
	maxSentence = 64 << 10
	// maxHeld is how much of one object is held where its contents choose its rules: a CustomResourceDefinition has up to 1.5 MiB in
	// etcd, a little more as JSON.
	maxHeld = 8 << 20
)

var (
	// ErrTooDeep is what Append returns for JSON that nests deeper than any API server accepts.
	ErrTooDeep = errors.New("JSON nests deeper than 512 objects and arrays")
	// ErrTooLarge is what Append returns if an object that must be held at once is too large for that.
	ErrTooLarge = errors.New("object is larger than can be held at once")
	// ErrTruncated is what Close returns if the JSON isn't complete.
	ErrTruncated = errors.New("JSON ends before it is complete")
	// ErrInvalid is what Append returns for what can't be JSON.
	ErrInvalid = errors.New("invalid JSON")
)

// state is what the Translator expects next, or is in the middle of.
type state uint8

const (
	inValue  state = iota // a value, or the end of an array
	inKey                 // a key, or the end of an object
	inColon               // a colon
	inAfter               // a comma, or the end of an object or array
	inString              // a string of no interest
	inName                // a string that may have to be renamed, from token on
	inName0               // a key that has to be compared, from token on
	inScalar              // a number or literal
	inSkip                // an object or array of no interest
	inSkipS               // a string in one
	inTail                // after the only value
)

// frame is an object or array that is open.
type frame struct {
	node  *node
	kind  kinds
	array bool
	kept  bool // an element that could have been dropped was kept
	later bool // the first element is over
}

// Translator renames groups in a stream of JSON. It keeps less than 70 KiB between calls, except where a Plan has to see a whole object
// (CustomResourceDefinitions, groups of discovery, rules of roles, operations of a JSON patch).
//
// A Translator is for one body and one goroutine; Reset makes it ready for another body.
type Translator struct {
	root   *node
	hide   bool
	stream bool // a sequence of values

	state   state
	escaped bool // the next byte of a string is escaped
	key     bool // the string of inName is a key
	cut     bool // token was too long and is not complete
	holding bool // held has the beginning of the object of inSkip
	between bool // what is before an element that may be dropped isn't out yet
	mute    bool // the current value is dropped
	dropped bool // the last element
	swallow bool // the newline after a dropped value is dropped, too

	next  *node // of the value that comes
	skip  int   // objects and arrays that are open in inSkip
	stack []frame
	token []byte // of a string that began in an earlier chunk
	held  []byte
	sep   []byte // what is between the last element and this one
	sub   *Translator
}

// New returns a Translator for one body.
func New(p Plan) *Translator {
	x := &Translator{}
	x.Reset(p)
	return x
}

// Reset forgets everything and begins a new body.
func (x *Translator) Reset(p Plan) {
	*x = Translator{root: p.root, hide: p.hide, stream: p.stream, next: p.root, sub: x.sub,
		stack: x.stack[:0], token: x.token[:0], held: x.held[:0], sep: x.sep[:0]}
	const keep = 64 << 10 // of a large object nothing stays behind
	if cap(x.held) > keep {
		x.held = nil
	}
}

// Bytes translates a whole body, appending to dst.
func Bytes(p Plan, dst, src []byte) ([]byte, error) {
	x := New(p)
	dst, err := x.Append(dst, src)
	if err != nil {
		return dst, err
	}
	return dst, x.Close()
}

// Close tells whether the JSON was complete.
func (x *Translator) Close() error {
	switch {
	case x.state == inTail, x.stream && x.state == inValue && len(x.stack) == 0, x.state == inScalar && len(x.stack) == 0:
		return nil
	case x.state == inValue && len(x.stack) == 0 && !x.between:
		return nil // nothing at all, which is for others to judge
	}
	return ErrTruncated
}

// Boundary tells whether the stream is between two values.
func (x *Translator) Boundary() bool {
	return len(x.stack) == 0 && (x.state == inValue || x.state == inTail)
}

// Append translates the next part of a body and appends the result to dst. What is held back comes with later parts; nothing is held
// back at the end of a value of a stream. After an error, which wraps one of this package's, the body can't be translated any further.
func (x *Translator) Append(dst, src []byte) ([]byte, error) { //nolint:gocyclo,funlen // one loop over bytes: states share i and last, and calls would cost half the speed
	var (
		i    int
		last int // src[last:i] isn't out yet
		n    = len(src)
	)
	for i < n {
		switch x.state {
		case inSkip:
			depth := x.skip
			for i < n {
				c := classes[src[i]]
				i++
				if c == 0 {
					continue
				}
				if c == classQuote {
					end, ok := x.skipString(src, i)
					i = end
					if !ok {
						x.skip, x.state = depth, inSkipS
						break
					}
					continue
				}
				if c == classOpen {
					depth++
					if depth+len(x.stack) > maxDepth {
						return dst, ErrTooDeep
					}
					continue
				}
				if depth--; depth == 0 {
					break
				}
			}
			x.skip = depth
			if depth != 0 || x.state != inSkip {
				continue
			}
			if x.holding {
				var err error
				if dst, err = x.release(dst, src[last:i]); err != nil {
					return dst, err
				}
				last = i
			}
			goto valueEnd

		case inSkipS:
			end, ok := x.skipString(src, i)
			i = end
			if ok {
				x.state = inSkip
			}
			continue

		case inString:
			end, ok := x.skipString(src, i)
			i = end
			if !ok {
				continue
			}
			goto valueEnd

		case inName, inName0:
			// The string began in an earlier part, and token has what came of it.
			end, ok := x.skipString(src, i)
			x.hold(src[i:end])
			i = end
			if x.cut {
				if x.state == inName {
					dst, last = append(dst, x.token...), i
					x.token = x.token[:0]
					switch {
					case ok:
					case x.key:
						x.state = inName0
						continue
					default:
						x.state, x.cut = inString, false
						continue
					}
				}
			}
			if !ok {
				if x.state == inName {
					last = i
				}
				continue
			}
			if x.cut {
				x.token, x.cut = x.token[:0], false
				if x.key {
					x.next, x.state = x.top().node.other, inColon
					continue
				}
				goto valueEnd
			}
			name := x.token[:len(x.token)-1]
			if x.state == inName0 {
				x.next = x.top().node.child(unescape(name), x.top().kind)
				x.token, x.state = x.token[:0], inColon
				continue
			}
			var changed bool
			if dst, changed = x.rename(dst, name); !changed {
				dst = append(dst, name...)
			}
			dst = append(dst, '"')
			last = i
			x.token = x.token[:0]
			if x.key {
				x.next, x.state = x.top().node.other, inColon
				continue
			}
			goto valueEnd

		case inValue:
			c := src[i]
			switch c {
			case ' ', '\t', '\r':
				i++
				continue
			case '\n':
				if x.swallow {
					dst = append(dst, src[last:i]...)
					last = i + 1
					x.swallow = false
				}
				i++
				continue
			}
			x.swallow = false
			nd := x.next
			if x.between && (nd == nil || nd.pick == nil || c != '{') {
				x.between = false
				dst = append(dst, x.sep...)
				x.sep = x.sep[:0]
			}
			switch c {
			case '{':
				i++
				if nd != nil && nd.pick != nil {
					if x.between {
						x.sep = append(x.sep, src[last:i-1]...)
					} else {
						dst = append(dst, src[last:i-1]...)
					}
					last = i - 1
					x.holding, x.state, x.skip = true, inSkip, 1
					continue
				}
				if nd == nil || !nd.objects() {
					x.state, x.skip = inSkip, 1
					if len(x.stack) >= maxDepth {
						return dst, ErrTooDeep
					}
					continue
				}
				if err := x.push(nd, false); err != nil {
					return dst, err
				}
				x.state = inKey
				continue
			case '[':
				i++
				if nd == nil || !nd.arrays() {
					x.state, x.skip = inSkip, 1
					if len(x.stack) >= maxDepth {
						return dst, ErrTooDeep
					}
					continue
				}
				if err := x.push(nd, true); err != nil {
					return dst, err
				}
				x.element()
				continue
			case '"':
				i++
				if nd == nil || nd.leaf == formNone {
					x.state = inString
					continue
				}
				end, ok := x.skipString(src, i)
				if !ok {
					dst = append(dst, src[last:i]...)
					x.hold(src[i:end])
					x.key, x.state, i, last = false, inName, end, end
					continue
				}
				name := src[i : end-1]
				if nd.leaf == formKind {
					x.top().kind = kindOf(name)
				} else if canRename(nd.leaf, name) {
					mark := len(dst)
					dst = append(dst, src[last:i]...)
					var changed bool
					x.key = false
					if dst, changed = x.rename(dst, name); changed {
						last = end - 1
					} else {
						dst = dst[:mark]
					}
				}
				i = end
				goto valueEnd
			case ']':
				if len(x.stack) == 0 || !x.top().array {
					return dst, ErrInvalid
				}
				i++
				x.stack = x.stack[:len(x.stack)-1]
				goto valueEnd
			case ',', ':', '}':
				return dst, ErrInvalid
			}
			x.state = inScalar
			continue

		case inScalar:
			for i < n && !endsScalar(src[i]) {
				i++
			}
			if i == n {
				continue
			}
			goto valueEnd

		case inKey:
			c := src[i]
			switch c {
			case ' ', '\t', '\r', '\n':
				i++
				continue
			case '}':
				x.flushBetween(&dst)
				i++
				x.stack = x.stack[:len(x.stack)-1]
				goto valueEnd
			case '"':
			default:
				return dst, ErrInvalid
			}
			i++
			top := x.top()
			end, ok := x.skipString(src, i)
			if top.node.keys != formNone {
				var err error
				if dst, i, last, err = x.mapKey(dst, src, last, i, end, ok); err != nil {
					return dst, err
				}
				continue
			}
			if !ok {
				x.hold(src[i:end])
				x.key, x.state, i = true, inName0, end
				continue
			}
			x.next = top.node.child(unescape(src[i:end-1]), top.kind)
			i, x.state = end, inColon
			continue

		case inColon:
			switch src[i] {
			case ' ', '\t', '\r', '\n':
			case ':':
				x.state = inValue
			default:
				return dst, ErrInvalid
			}
			i++
			continue

		case inAfter:
			top := x.top()
			switch src[i] {
			case ' ', '\t', '\r', '\n':
				i++
			case ',':
				if top.array {
					top.later = true
					x.element()
				} else {
					x.state = inKey
				}
				if x.droppable(top) {
					top.kept = top.kept || top.array && !x.dropped
					x.dropped = false
					dst = append(dst, src[last:i]...)
					last = i
					x.between = true
				}
				i++
			case '}', ']':
				if top.array != (src[i] == ']') {
					return dst, ErrInvalid
				}
				i++
				x.stack = x.stack[:len(x.stack)-1]
				goto valueEnd
			default:
				return dst, ErrInvalid
			}
			continue

		case inTail:
			i = n
			continue
		}
	valueEnd:
		if x.mute {
			last, x.mute = i, false
		}
		switch {
		case len(x.stack) > 0:
			x.state = inAfter
		case x.stream:
			x.next, x.state = x.root, inValue
		default:
			x.state = inTail
		}
	}
	return x.endPart(dst, src[last:])
}

// endPart puts what is left of a part where it belongs.
func (x *Translator) endPart(dst, rest []byte) ([]byte, error) {
	switch {
	case x.mute:
	case x.holding:
		x.held = append(x.held, rest...)
		if len(x.held) > maxHeld {
			return dst, ErrTooLarge
		}
	case x.between:
		x.sep = append(x.sep, rest...)
		if len(x.sep) > maxSentence {
			return dst, ErrTooLarge
		}
	default:
		dst = append(dst, rest...)
	}
	return dst, nil
}

func (x *Translator) top() *frame {
	if len(x.stack) == 0 {
		return &frame{}
	}
	return &x.stack[len(x.stack)-1]
}

func (x *Translator) push(n *node, array bool) error {
	if len(x.stack) >= maxDepth {
		return ErrTooDeep
	}
	x.stack = append(x.stack, frame{node: n, array: array})
	return nil
}

// element expects an element of the array on top.
func (x *Translator) element() {
	top := x.top()
	x.next, x.state = top.node.elem, inValue
	if !top.later && top.node.first != nil {
		x.next = top.node.first
	}
}

// droppable tells whether something in an object or array may be hidden, so that commas wait for what follows them.
func (x *Translator) droppable(f *frame) bool {
	if !x.hide {
		return false
	}
	if f.array {
		return f.node.elem != nil && f.node.elem.pick != nil
	}
	return f.node.keys == formURL || f.node.keys == formDefinition || f.node.keys == formOpenAPIPath
}

func (x *Translator) flushBetween(dst *[]byte) {
	if x.between {
		*dst = append(*dst, x.sep...)
		x.sep, x.between = x.sep[:0], false
	}
}

// release translates the object that was held and ends with rest.
func (x *Translator) release(dst, rest []byte) ([]byte, error) {
	raw := rest
	if len(x.held) > 0 {
		if len(x.held)+len(rest) > maxHeld {
			return dst, ErrTooLarge
		}
		x.held = append(x.held, rest...)
		raw = x.held
	}
	x.holding = false
	n, keep := x.next.pick(raw, x.hide)
	if !keep && (len(x.stack) == 0 || x.top().array) {
		x.swallow, x.dropped = len(x.stack) == 0, true
		x.sep, x.between, x.held = x.sep[:0], false, x.held[:0]
		return dst, nil
	}
	if x.between {
		sep := x.sep
		if !x.top().kept && len(sep) > 0 && sep[0] == ',' {
			sep = sep[1:] // everything before was dropped
		}
		dst = append(dst, sep...)
		x.sep, x.between = x.sep[:0], false
	}
	if x.sub == nil {
		x.sub = &Translator{}
	}
	x.sub.Reset(Plan{root: n, hide: x.hide})
	dst, err := x.sub.Append(dst, raw)
	x.held = x.held[:0]
	return dst, err
}

// mapKey handles the key of a map whose keys are names. src[start:end] is the key with its closing quote, if ok, else its beginning.
func (x *Translator) mapKey(dst, src []byte, last, start, end int, ok bool) (_ []byte, i, newLast int, err error) {
	top := x.top()
	hiding := x.droppable(top)
	if hiding && !ok {
		return dst, 0, 0, ErrTooLarge // documents whose keys may be hidden are never translated in parts, see OpenAPI
	}
	if !ok {
		dst = append(dst, src[last:start]...)
		x.hold(src[start:end])
		x.key, x.state, x.next = true, inName, top.node.other
		return dst, end, end, nil
	}
	key := src[start : end-1]
	out, changed, theirs := top.node.keys.apply(nil, unescape(key))
	x.state, x.next = inColon, top.node.other
	if theirs && hiding {
		x.sep, x.between = x.sep[:0], false
		x.mute, x.next = true, nil
		return append(dst, beforeKey(src[last:start-1])...), end, end, nil
	}
	sep := src[last : start-1]
	if x.between && !top.kept && len(sep) > 0 && sep[0] == ',' {
		sep = sep[1:]
	}
	x.sep, x.between = x.sep[:0], false
	top.kept = true
	dst = append(dst, sep...)
	if !changed {
		return append(dst, src[start-1:end]...), end, end, nil
	}
	dst = append(append(append(dst, '"'), out...), '"')
	return dst, end, end, nil
}

// beforeKey is what of the bytes before a dropped key is out in any case: the brace of the object, but no comma.
func beforeKey(sep []byte) []byte {
	if len(sep) > 0 && sep[0] == ',' {
		return nil
	}
	return sep
}

// hold keeps the beginning of a string for later.
func (x *Translator) hold(part []byte) {
	limit := maxName
	if !x.key && x.next != nil && x.next.leaf.isText() {
		limit = maxSentence
	}
	if x.cut && x.state == inName0 {
		return
	}
	if len(x.token)+len(part) > limit {
		x.cut = true
		if x.state == inName0 {
			return
		}
	}
	x.token = append(x.token, part...)
}

// rename appends the new name of a string's raw bytes, if it has one.
func (x *Translator) rename(dst, raw []byte) (out []byte, changed bool) {
	f := formNone
	if x.key {
		f = x.top().node.keys
	} else if x.next != nil {
		f = x.next.leaf
	}
	switch {
	case f == formKind:
		x.top().kind = kindOf(raw)
		return dst, false
	case !canRename(f, raw):
		return dst, false
	case f.isText() || bytes.IndexByte(raw, '\\') < 0:
		out, changed, _ = f.apply(dst, raw)
		return out, changed
	}
	plain, changed, _ := f.apply(nil, unescape(raw))
	if !changed {
		return dst, false
	}
	return appendEscaped(dst, plain), true
}

func canRename(f form, raw []byte) bool {
	if f.isText() {
		return len(raw) <= maxSentence
	}
	return len(raw) <= maxName
}
