package apply

import "reflect"

// associative are the lists that the API server merges by key, so that others may add items of their own beside ours.
// All other lists are ours as a whole: an item more, such as a rule in a Role, is a change to undo.
var associative = map[string]bool{
	"containers": true, "initContainers": true, "env": true, "volumes": true, "volumeMounts": true, "ports": true,
	"ownerReferences": true, "imagePullSecrets": true, "finalizers": true,
}

// contains says whether have has every value of want. Values that want leaves unset are not looked at.
func contains(have, want map[string]any) bool {
	for key, w := range want {
		h, found := have[key]
		if !found {
			if isUnset(w) {
				continue
			}
			return false
		}
		if !matches(h, w, associative[key]) {
			return false
		}
	}
	return true
}

func matches(have, want any, mayHaveMore bool) bool {
	switch w := want.(type) {
	case nil:
		return true
	case map[string]any:
		h, ok := have.(map[string]any)
		return ok && contains(h, w)
	case []any:
		h, ok := have.([]any)
		return ok && containsList(h, w, mayHaveMore)
	default:
		return reflect.DeepEqual(have, want)
	}
}

// containsList says whether the items of want are in have, in the same order; with mayHaveMore, others may stand between.
func containsList(have, want []any, mayHaveMore bool) bool {
	if !mayHaveMore && len(have) != len(want) {
		return false
	}
	i := 0
	for _, h := range have {
		if i < len(want) && matches(h, want[i], false) {
			i++
		}
	}
	return i == len(want)
}

// isUnset says whether a value is what Go writes for a struct or time that nobody set.
func isUnset(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, child := range v {
			if !isUnset(child) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return false
	}
}
