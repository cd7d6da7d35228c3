package fieldpath

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func machineSet(labels map[string]any, ready string) map[string]any {
	return map[string]any{
		"kind": "MachineSet", "metadata": map[string]any{"name": "demo", "resourceVersion": ready, "generation": int64(len(labels))},
		"spec":   map[string]any{"selector": map[string]any{"matchLabels": labels}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready}, map[string]any{"type": "Paused", "status": "False"}}},
	}
}

func TestChanges(t *testing.T) {
	g := NewWithT(t)
	bare := Flatten(machineSet(map[string]any{"pool": "demo"}, "True"))
	named := Flatten(machineSet(map[string]any{"pool": "demo", "cluster.x-k8s.io/cluster-name": "demo"}, "False"))
	g.Expect(Changes(bare, bare)).To(BeEmpty(), "When nothing differs it should name nothing")
	var text []string
	for _, c := range Changes(bare, named) {
		text = append(text, c.String())
	}
	g.Expect(text).To(Equal([]string{
		`spec.selector.matchLabels[cluster.x-k8s.io/cluster-name]: (none) → "demo"`,
		`status.conditions[type=Ready].status: "True" → "False"`,
	}), "When a label and a condition differ it should name them, and not what every write changes")
	long := map[string]any{"data": map[string]any{"x": string(make([]byte, 10000))}}
	g.Expect(len(Flatten(long)["data.x"].Value)).To(BeNumerically("<", 200), "When a value is long it should be cut")
	secret := Flatten(map[string]any{"kind": "Secret", "data": map[string]any{"token": "aHVudGVyMg=="}})
	g.Expect(secret["data.token"].Value).NotTo(ContainSubstring("aHVud"), "When it is a Secret no value should be shown")
}

func TestManagers(t *testing.T) {
	g := NewWithT(t)
	at := metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	adds := entry("adds", `{"f:spec":{"f:selector":{"f:matchLabels":{"f:example.com/name":{}}}}}`)
	whole := entry("whole", `{"f:spec":{"f:selector":{}}}`)
	other := entry("other", `{"f:spec":{"f:replicas":{}},"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}}}}`)
	states := []metav1.ManagedFieldsEntry{adds, whole, other}
	label := []string{"spec", "selector", "matchLabels", "example.com/name"}
	g.Expect(Managers(label, states)).To(Equal([]string{"adds", "whole"}), "When one manages a field and one all of what it is in it should name both")
	g.Expect(Managers(label, states[2:], states[:1])).To(Equal([]string{"adds"}), "When only an earlier state names a manager it should count")
	g.Expect(Managers([]string{"status", "conditions", "[type=Ready]", "status"}, states)).To(Equal([]string{"other"}))
	g.Expect(Managers([]string{"status", "conditions", "[type=Paused]", "status"}, states)).To(BeEmpty())
	g.Expect(Owners(states)).To(HaveKeyWithValue("spec.selector.matchLabels[example.com/name]", HaveField("Value", "adds")))
	g.Expect(Owners(append(states, entry("more", `{"f:spec":{"f:replicas":{}}}`)))).To(HaveKeyWithValue("spec.replicas", HaveField("Value", "more,other")))
	g.Expect(Writers([]metav1.ManagedFieldsEntry{adds, other}, states)).To(Equal([]string{"whole"}), "When an entry is new its manager has written")
	g.Expect(Writers(states, states)).To(BeEmpty())
}

func TestFlattenAnything(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Bool(), func(b bool) any { return b }))
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z./\[\]=]{0,6}`), value(depth-1), 0, 4), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,6}`), value(3), 0, 5).Draw(t, "object")
		fields := Flatten(object)
		if changes := Changes(fields, Flatten(object)); len(changes) > 0 {
			t.Fatalf("an object differs from itself: %v", changes)
		}
		for path, f := range fields {
			if Print(f.Segments) != path {
				t.Fatalf("%q is printed as %q", path, Print(f.Segments))
			}
			Managers(f.Segments, []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:a":{"k:{}":{},"v:1":{}}}`)}})
		}
	})
}
