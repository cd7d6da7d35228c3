package translate

import "bytes"

// The states of a Translator. Each reads from src[i], as far as it can, and tells whether a value ended there.

// value reads the beginning of a value, or the end of an empty array.
func (x *Translator) value() (ended bool, err error) {
	c := x.src[x.i]
	switch c {
	case ' ', '\t', '\r':
		x.i++
		return false, nil
	case '\n':
		if x.swallow {
			x.out(x.i)
			x.last = x.i + 1
			x.swallow = false
		}
		x.i++
		return false, nil
	}
	x.swallow = false
	if x.between && (c != '{' || x.next == nil || x.next.pick == nil) {
		x.flushBetween()
	}
	switch c {
	case '{':
		return x.open(x.next != nil && x.next.objects(), false)
	case '[':
		return x.open(x.next != nil && x.next.arrays(), true)
	case '"':
		x.i++
		if x.next == nil || x.next.leaf == formNone {
			x.state = inString
			x.i, ended = x.skipString(x.src, x.i)
			return ended, nil
		}
		return x.leaf(), nil
	case ']':
		if len(x.stack) == 0 || !x.top().array {
			return false, ErrInvalid
		}
		x.i++
		x.pop()
		return true, nil
	case ',', ':', '}':
		return false, ErrInvalid
	}
	x.state = inScalar
	return false, nil
}

// open begins an object or array.
func (x *Translator) open(interesting, array bool) (ended bool, err error) {
	begin := x.i
	x.i++
	switch {
	case x.next != nil && x.next.pick != nil && !array:
		if x.between {
			x.sep = append(x.sep, x.src[x.last:begin]...)
			x.last = begin
		} else {
			x.out(begin)
		}
		x.holding, x.state, x.skip = true, inSkip, 1
		return false, nil
	case interesting && x.next.spelt && begin >= x.dense:
		if end := x.unspelt(x.i); end > 0 {
			x.i = end
			return true, nil
		}
	}
	if !interesting {
		if len(x.stack) >= maxDepth {
			return false, ErrTooDeep
		}
		x.state, x.skip = inSkip, 1
		return false, nil
	}
	if err := x.push(x.next, array); err != nil {
		return false, err
	}
	if array {
		x.element()
	} else {
		x.state = inKey
	}
	return false, nil
}

// unspelt returns where the object or array that began just before src[i] ends, if nothing in it can have to be renamed: it has neither
// the text that all names of groups share nor escapes that could stand for that. Else it is 0, and isn't tried again before that end.
// Going over something quickly in order to find nothing costs a third of reading it.
func (x *Translator) unspelt(i int) (end int) {
	end, depth, _ := x.nested(x.src, i, 1, maxDepth-len(x.stack))
	x.escaped = false
	if depth == 0 {
		body := x.src[i:end]
		if !bytes.Contains(body, sharedText) && !escapesText(body) {
			return end
		}
	} else {
		end = len(x.src)
	}
	x.dense = end
	return 0
}

// sharedText is in both Standard and Private.
var sharedText = []byte("cluster.")

// escapesText tells whether a backslash in JSON may stand for a character that names are made of.
func escapesText(body []byte) bool {
	for {
		at := bytes.IndexByte(body, '\\')
		if at < 0 {
			return false
		}
		if at+1 == len(body) {
			return true
		}
		switch body[at+1] {
		case '"', '\\', 'n', 't', 'r', 'b', 'f':
		default:
			return true
		}
		body = body[at+2:]
	}
}

// leaf reads a string that may have to be renamed.
func (x *Translator) leaf() (ended bool) {
	i := x.i
	end, ok := x.skipString(x.src, i)
	if !ok {
		x.out(i)
		x.hold(x.src[i:end])
		x.key, x.state, x.i, x.last = false, inName, end, end
		return false
	}
	x.i, x.key = end, false
	name := x.src[i : end-1]
	if x.next.leaf == formKind {
		x.top().kind = kindOf(name)
		return true
	}
	if !canRename(x.next.leaf, name) {
		return true
	}
	mark := len(x.dst)
	dst := append(x.dst, x.src[x.last:i]...)
	if dst, changed := x.rename(dst, name); changed {
		x.dst, x.last = dst, end-1
	} else {
		x.dst = dst[:mark]
	}
	return true
}

// keyOrEnd reads a key, or the end of an object.
func (x *Translator) keyOrEnd() (ended bool, err error) {
	switch x.src[x.i] {
	case ' ', '\t', '\r', '\n':
		x.i++
		return false, nil
	case '}':
		x.flushBetween()
		x.i++
		x.pop()
		return true, nil
	case '"':
	default:
		return false, ErrInvalid
	}
	x.i++
	i, top := x.i, x.top()
	x.slashed = false
	end, ok := x.skipString(x.src, i)
	x.i = end
	switch {
	case top.node.keys != formNone:
		return false, x.mapKey(i, ok)
	case !ok:
		x.hold(x.src[i:end])
		x.key, x.state = true, inName0
		return false, nil
	}
	key := x.src[i : end-1]
	if x.slashed {
		key = unescape(key)
	}
	x.next, x.state = top.node.child(key, top.kind), inColon
	if end < len(x.src) && x.src[end] == ':' {
		x.i, x.state = end+1, inValue
	}
	return false, nil
}

func (x *Translator) colon() error {
	switch x.src[x.i] {
	case ' ', '\t', '\r', '\n':
	case ':':
		x.state = inValue
	default:
		return ErrInvalid
	}
	x.i++
	return nil
}

// after reads what comes after a value.
func (x *Translator) after() (ended bool, err error) {
	top, c := x.top(), x.src[x.i]
	switch c {
	case ' ', '\t', '\r', '\n':
	case ',':
		if top.droppable {
			top.kept = top.kept || top.array && !x.dropped
			x.dropped = false
			x.out(x.i)
			x.between = true
		}
		if top.array {
			top.later = true
			x.element()
		} else {
			x.state = inKey
		}
	case '}', ']':
		if top.array != (c == ']') {
			return false, ErrInvalid
		}
		x.pop()
		ended = true
	default:
		return false, ErrInvalid
	}
	x.i++
	return ended, nil
}

// skipped reads an object or array of no interest, or one that is held.
func (x *Translator) skipped() (ended bool, err error) {
	i := x.i
	if x.state == inSkipS {
		if x.i, ended = x.skipString(x.src, i); !ended {
			return false, nil
		}
		i = x.i
	}
	x.state = inSkip
	if x.i, x.skip, err = x.nested(x.src, i, x.skip, maxDepth-len(x.stack)); err != nil || x.skip > 0 {
		return false, err
	}
	if x.holding {
		err = x.release(x.src[x.last:x.i])
		x.last = x.i
	}
	return true, err
}

// nested goes from src[i] to the end of objects and arrays of which depth are open, and returns how many are left at the end of src.
func (x *Translator) nested(src []byte, i, depth, limit int) (end, left int, err error) {
	for i < len(src) {
		c := classes[src[i]]
		i++
		switch c {
		case 0:
		case classQuote:
			end, ok := x.skipString(src, i)
			i = end
			if !ok {
				x.state = inSkipS
				return i, depth, nil
			}
		case classOpen:
			if depth++; depth > limit {
				return i, depth, ErrTooDeep
			}
		case classClose:
			if depth--; depth == 0 {
				return i, 0, nil
			}
		}
	}
	return i, depth, nil
}

// name goes on with a string that began in an earlier part, and of which token has what came.
func (x *Translator) name() (ended bool) {
	end, ok := x.skipString(x.src, x.i)
	x.hold(x.src[x.i:end])
	x.i = end
	if x.cut && x.state == inName {
		x.dst, x.last = append(x.dst, x.token...), end
		x.token = x.token[:0]
		switch {
		case ok:
		case x.key:
			x.state = inName0
			return false
		default:
			x.state, x.cut = inString, false
			return false
		}
	}
	if !ok {
		if x.state == inName {
			x.last = end
		}
		return false
	}
	next := x.top().node
	switch {
	case x.cut:
		x.cut = false
		if x.key {
			next = next.other
		}
	case x.state == inName0:
		next = next.child(unescape(x.token[:len(x.token)-1]), x.top().kind)
	default:
		name := x.token[:len(x.token)-1]
		dst, changed := x.rename(x.dst, name)
		if !changed {
			dst = append(dst, name...)
		}
		x.dst, x.last = append(dst, '"'), end
		if x.key {
			next = next.other
		}
	}
	x.token = x.token[:0]
	if !x.key {
		return true
	}
	x.next, x.state = next, inColon
	return false
}
