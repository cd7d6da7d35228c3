package translate

import "strings"

// JSONPatch translates a JSON patch (RFC 6902): the value of each operation is renamed by the position that its path leads to.
// A path is renamed where it names a position by a group. What is no list of operations is returned as it is; the API server refuses it. The
// error is of a value that names a group and can't be translated, because it is nested too deep for one.
func JSONPatch(p Plan, dst, src []byte) ([]byte, error) {
	ops := elements(src)
	last := 0
	var failed error
	for _, op := range ops {
		start := offset(src, op)
		dst = append(dst, src[last:start]...)
		var err error
		if dst, err = patchOperation(p, dst, op); err != nil && failed == nil {
			failed = err
		}
		last = start + len(op)
	}
	return append(dst, src[last:]...), failed
}

// offset is where part, which is a slice of whole, begins in it.
func offset(whole, part []byte) int { return cap(whole) - cap(part) }

func patchOperation(p Plan, dst, op []byte) (_ []byte, failed error) {
	position, _ := walk(p.root, unquote(find(op, "path")))
	last := 0
	members(op, func(key, value []byte) {
		start := offset(op, value)
		switch string(unquote(key)) {
		case "value":
			if position == nil {
				return
			}
			dst = append(dst, op[last:start]...)
			mark := len(dst)
			out, err := Bytes(Plan{root: position, hide: false}, dst, value)
			if err != nil {
				out = append(out[:mark], value...)
				if MayName(value) {
					failed = err
				}
			}
			dst, last = out, start+len(value)
		case "path", "from":
			if _, renamed := walk(p.root, unquote(value)); renamed != "" {
				dst = append(append(dst, op[last:start]...), '"')
				dst = append(appendEscaped(dst, []byte(renamed)), '"')
				last = start + len(value)
			}
		}
	})
	return append(dst, op[last:]...), failed
}

// walk follows a JSON pointer from a root and returns the position that it leads to, and the pointer itself if it names
// something by a group.
func walk(n *node, pointer []byte) (position *node, renamed string) {
	if len(pointer) == 0 || pointer[0] != '/' {
		if len(pointer) == 0 {
			return n, ""
		}
		return nil, ""
	}
	tokens := strings.Split(string(pointer[1:]), "/")
	changed := false
	for i, token := range tokens {
		if n == nil {
			break
		}
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch {
		case n.objects() && (!n.arrays() || !isIndex(name)):
			if n.keys != formNone {
				if to := n.keys.text(name); to != name {
					tokens[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(to)
					changed = true
				}
			}
			n = n.child([]byte(name), 0)
		case isIndex(name) && n.arrays():
			if name == "0" && n.first != nil {
				n = n.first
			} else {
				n = n.elem
			}
		default:
			n = nil
		}
	}
	if changed {
		renamed = "/" + strings.Join(tokens, "/")
	}
	return n, renamed
}

func isIndex(s string) bool {
	if s == "-" {
		return true
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
