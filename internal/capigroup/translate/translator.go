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
	// droppable: something in it may be hidden, so that commas wait for what follows them.
	droppable bool
	kept      bool // an element that could have been dropped was kept
	later     bool // the first element is over
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
	slashed bool // the last string has a backslash
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

	part
}

// part is what Append is given, and how far it is.
type part struct {
	src, dst []byte
	i        int // what comes next in src
	last     int // src[last:i] isn't out yet
	dense    int // groups are spelt out, or may be, in what begins before src[dense]
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

// Append translates the next part of a body and appends the result to dst. What is held back comes with later parts; nothing is held
// back at the end of a value of a stream. After an error, which wraps one of this package's, the body can't be translated any further.
func (x *Translator) Append(dst, src []byte) ([]byte, error) {
	x.part = part{src: src, dst: dst}
	var err error
	for x.i < len(src) && err == nil {
		err = x.step()
	}
	if err == nil {
		err = x.endPart(src[x.last:])
	}
	dst = x.dst
	x.part = part{}
	return dst, err
}

// step reads one token, or what there is of it.
func (x *Translator) step() (err error) {
	ended := false // a value did
	switch x.state {
	case inValue:
		ended, err = x.value()
	case inKey:
		ended, err = x.keyOrEnd()
	case inAfter:
		ended, err = x.after()
	case inColon:
		err = x.colon()
	case inSkip, inSkipS:
		ended, err = x.skipped()
	case inString:
		x.i, ended = x.skipString(x.src, x.i)
	case inName, inName0:
		ended = x.name()
	case inScalar:
		for x.i < len(x.src) && !endsScalar(x.src[x.i]) {
			x.i++
		}
		ended = x.i < len(x.src)
	case inTail:
		x.i = len(x.src)
	}
	if ended {
		x.valueEnd()
	}
	return err
}

// valueEnd is called where a value ends.
func (x *Translator) valueEnd() {
	if x.mute {
		x.last, x.mute = x.i, false
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

// endPart puts what is left of a part where it belongs.
func (x *Translator) endPart(rest []byte) error {
	switch {
	case x.mute:
	case x.holding:
		x.held = append(x.held, rest...)
		if len(x.held) > maxHeld {
			return ErrTooLarge
		}
	case x.between:
		x.sep = append(x.sep, rest...)
		if len(x.sep) > maxSentence {
			return ErrTooLarge
		}
	default:
		x.dst = append(x.dst, rest...)
	}
	return nil
}

// out lets everything before src[to] out.
func (x *Translator) out(to int) {
	x.dst = append(x.dst, x.src[x.last:to]...)
	x.last = to
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
	x.stack = append(x.stack, frame{node: n, array: array, droppable: x.hide && n.droppable(array)})
	return nil
}

func (x *Translator) pop() { x.stack = x.stack[:len(x.stack)-1] }

// element expects an element of the array on top.
func (x *Translator) element() {
	top := x.top()
	x.next, x.state = top.node.elem, inValue
	if !top.later && top.node.first != nil {
		x.next = top.node.first
	}
}

// flushBetween lets out what was before something that could have been dropped.
func (x *Translator) flushBetween() {
	if x.between {
		x.dst = append(x.dst, x.sep...)
		x.sep, x.between = x.sep[:0], false
	}
}

// release translates the object that was held and ends with rest.
func (x *Translator) release(rest []byte) (err error) {
	raw := rest
	if len(x.held) > 0 {
		if len(x.held)+len(rest) > maxHeld {
			return ErrTooLarge
		}
		x.held = append(x.held, rest...)
		raw = x.held
	}
	x.holding = false
	n, keep := x.next.pick(raw, x.hide)
	if !keep && (len(x.stack) == 0 || x.top().array) {
		x.swallow, x.dropped = len(x.stack) == 0, true
		x.sep, x.between, x.held = x.sep[:0], false, x.held[:0]
		return nil
	}
	if x.between {
		sep := x.sep
		if !x.top().kept && len(sep) > 0 && sep[0] == ',' {
			sep = sep[1:] // everything before was dropped
		}
		x.dst = append(x.dst, sep...)
		x.sep, x.between = x.sep[:0], false
	}
	if x.sub == nil {
		x.sub = &Translator{}
	}
	x.sub.Reset(Plan{root: n, hide: x.hide})
	x.dst, err = x.sub.Append(x.dst, raw)
	x.held = x.held[:0]
	return err
}

// mapKey handles the key of a map whose keys are names: src[start:i], with its closing quote if ok, else the beginning of one.
func (x *Translator) mapKey(start int, ok bool) error {
	top := x.top()
	if !ok {
		if top.droppable {
			return ErrTooLarge // documents whose keys may be hidden are never translated in parts, see OpenAPI
		}
		x.out(start)
		x.hold(x.src[start:x.i])
		x.key, x.state, x.next, x.last = true, inName, top.node.other, x.i
		return nil
	}
	key := x.src[start : x.i-1]
	out, changed, theirs := top.node.keys.apply(nil, unescape(key))
	sep := x.src[x.last : start-1]
	x.state, x.next, x.last = inColon, top.node.other, x.i
	if theirs && top.droppable {
		x.sep, x.between = x.sep[:0], false
		x.mute, x.next = true, nil
		x.dst = append(x.dst, beforeKey(sep)...)
		return nil
	}
	if x.between && !top.kept && len(sep) > 0 && sep[0] == ',' {
		sep = sep[1:]
	}
	x.sep, x.between = x.sep[:0], false
	top.kept = true
	x.dst = append(x.dst, sep...)
	if !changed {
		x.dst = append(x.dst, x.src[start-1:x.i]...)
		return nil
	}
	x.dst = append(append(append(x.dst, '"'), out...), '"')
	return nil
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
