package apply

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestContains(t *testing.T) {
	item := func(name string) any { return map[string]any{"name": name} }
	for name, tc := range map[string]struct {
		have, want map[string]any
		out        bool
	}{
		"When others add a field it should be up to date":           {map[string]any{"a": 1, "b": 2}, map[string]any{"a": 1}, true},
		"When a value differs it should not be up to date":          {map[string]any{"a": 1}, map[string]any{"a": 2}, false},
		"When a wanted field is gone it should not be up to date":   {map[string]any{}, map[string]any{"a": 1}, false},
		"When only an empty struct is missing it should not matter": {map[string]any{}, map[string]any{"strategy": map[string]any{}}, true},
		"When others inject a container it should be up to date": {
			map[string]any{"containers": []any{item("theirs"), item("ours")}}, map[string]any{"containers": []any{item("ours")}}, true,
		},
		"When a container of ours is gone it should not be up to date": {
			map[string]any{"containers": []any{item("theirs")}}, map[string]any{"containers": []any{item("ours")}}, false,
		},
		"When somebody adds a rule to a role it should not be up to date": {
			map[string]any{"rules": []any{item("ours"), item("theirs")}}, map[string]any{"rules": []any{item("ours")}}, false,
		},
		"When somebody appends an argument it should not be up to date": {
			map[string]any{"args": []any{"-v=2", "-v=9"}}, map[string]any{"args": []any{"-v=2"}}, false,
		},
		"When a whole number is spelled as float it should be up to date": {map[string]any{"a": int64(1)}, map[string]any{"a": float64(1)}, true},
		"When a float is spelled as whole number it should be up to date": {map[string]any{"a": float64(1)}, map[string]any{"a": int64(1)}, true},
		"When a number differs it should not be up to date":               {map[string]any{"a": float64(1.5)}, map[string]any{"a": int64(1)}, false},
		"When nothing is wanted it should be up to date":                  {map[string]any{"a": "1"}, map[string]any{"a": nil}, true},
		"When a list that nobody set is missing it should not matter":     {map[string]any{}, map[string]any{"a": []any{}}, true},
		"When it is of another kind it should not be up to date":          {map[string]any{"a": "1"}, map[string]any{"a": map[string]any{"b": "1"}}, false},
		"When items are in another order it should not be up to date": {
			map[string]any{"containers": []any{item("b"), item("a")}}, map[string]any{"containers": []any{item("a"), item("b")}}, false,
		},
		"When a list in a list has more it should not be up to date": {
			map[string]any{"containers": []any{[]any{"a", "b"}}}, map[string]any{"containers": []any{[]any{"a"}}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Contains(tc.have, tc.want, func(field string) bool { return field == "containers" })).To(Equal(tc.out))
		})
	}
}
