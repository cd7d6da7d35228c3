package apply

import "reflect"

// MayHaveMore says of the list in a field whether others may have items beside the wanted ones.
type MayHaveMore func(field string) bool

// Contains says whether have has every value of want; both as decoded from JSON. Values of have that want doesn't speak of don't matter, nor
// do those of want that nobody set. The items of a list must stand in the same order.
func Contains(have, want map[string]any, more MayHaveMore) bool {
	for key, w := range want {
		if h, found := have[key]; found {
			if !more.matches(h, w, more(key)) {
				return false
			}
		} else if !unset(w) {
			return false
		}
	}
	return true
}

func (more MayHaveMore) matches(have, want any, mayHaveMore bool) bool {
	switch w := want.(type) {
	case nil:
		return true
	case map[string]any:
		h, ok := have.(map[string]any)
		return ok && Contains(h, w, more)
	case []any:
		h, ok := have.([]any)
		return ok && (mayHaveMore || len(h) == len(w)) && more.inOrder(h, w)
	case int64:
		if f, ok := have.(float64); ok {
			return f == float64(w)
		}
	case float64:
		if i, ok := have.(int64); ok {
			return w == float64(i)
		}
	}
	return reflect.DeepEqual(have, want)
}

// inOrder says whether the items of want are among those of have, in the same order. A list in a list is as free as the lists of field "".
func (more MayHaveMore) inOrder(have, want []any) bool {
	i := 0
	for _, h := range have {
		if i < len(want) && more.matches(h, want[i], more("")) {
			i++
		}
	}
	return i == len(want)
}

// unset says whether a value is what Go writes for a struct, a list or a time that nobody set.
func unset(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, child := range v {
			if !unset(child) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}
