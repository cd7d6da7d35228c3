package journal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/kube/conditions"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

func TestNext(t *testing.T) {
	var list []metav1.Condition
	conditions.Set(&list, noon, conditions.True("Available", "AsExpected", ""), conditions.False("Degraded", "AsExpected", ""))
	first, changed := Next(nil, list, noon)
	t.Run("When an object is seen first all of its conditions should be written down", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(changed).To(BeTrue())
		g.Expect(first).To(HaveLen(2))
		g.Expect(first[0]).To(Equal(Entry{At: noon, Type: "Available", To: yes, Reason: "AsExpected"}))
	})
	for name, tc := range map[string]struct {
		set    []metav1.Condition
		remove []string
		want   []Entry
	}{
		"When nothing changes it should be as before":                  {},
		"When only the message changes it should be as before":         {set: []metav1.Condition{conditions.True("Available", "AsExpected", "3 of 3")}},
		"When the status moves it should be written down":              {set: []metav1.Condition{conditions.False("Available", "Down", "x")}, want: []Entry{{At: noon.Add(time.Hour), Type: "Available", From: yes, To: no, Reason: "Down", Message: "x"}}},
		"When the reason changes it should be written down with now":   {set: []metav1.Condition{conditions.True("Available", "Other", "")}, want: []Entry{{At: noon.Add(2 * time.Hour), Type: "Available", From: yes, To: yes, Reason: "Other"}}},
		"When a condition goes it should be written down":              {remove: []string{"Degraded"}, want: []Entry{{At: noon.Add(2 * time.Hour), Type: "Degraded", From: no}}},
		"When a message is long and has lines it should be cut to one": {set: []metav1.Condition{conditions.False("Available", "Down", "a\nb"+strings.Repeat("c", 500))}, want: []Entry{{At: noon.Add(time.Hour), Type: "Available", From: yes, To: no, Reason: "Down", Message: "a b" + strings.Repeat("c", 197) + "…"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			now := append([]metav1.Condition{}, list...)
			conditions.Set(&now, noon.Add(time.Hour), tc.set...)
			conditions.Remove(&now, tc.remove...)
			got, changed := Next(first, now, noon.Add(2*time.Hour))
			g.Expect(changed).To(Equal(tc.want != nil))
			g.Expect(got[len(first):]).To(HaveExactElements(toAny(tc.want)...))
		})
	}
	t.Run("When a day is replayed it should keep order and bounds, and the last state of each condition", rapid.MakeCheck(func(t *rapid.T) {
		var list []metav1.Condition
		var have []Entry
		var all []Entry
		at := noon
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second)
			c := conditions.New(fmt.Sprint("Type", rapid.IntRange(0, 20).Draw(t, "type")), rapid.SampledFrom([]metav1.ConditionStatus{yes, no}).Draw(t, "status"), rapid.SampledFrom([]string{"A", "B"}).Draw(t, "reason"),
				strings.Repeat("m", rapid.IntRange(0, 400).Draw(t, "message")))
			conditions.Set(&list, at, c)
			before := len(have)
			next, changed := Next(have, list, at)
			if changed {
				all = append(all, next[len(next)-1])
			} else if len(next) != before {
				t.Fatal("changed without saying so")
			}
			have = next
		}
		if back := Parse(Text(have)); Text(back) != Text(have) {
			t.Fatal("it is not read as it was written")
		}
		if len(have) > MaxEntries || len(Text(have)) > MaxBytes {
			t.Fatalf("%d entries, %d bytes", len(have), len(Text(have)))
		}
		if _, again := Next(have, list, at.Add(time.Hour)); again {
			t.Fatal("a settled object is written down again")
		}
		i := 0 // the journal is what happened, in the order in which it did, without some of what is oldest
		for _, e := range have {
			for i < len(all) && all[i] != e {
				i++
			}
			if i == len(all) {
				t.Fatalf("%+v did not happen, or not then", e)
			}
			i++
		}
	}))
}

func toAny(list []Entry) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

func TestFirstFailure(t *testing.T) {
	good := func(kind string, s metav1.ConditionStatus) (bool, bool) { return s == yes, kind != "Size" }
	entry := func(minute int, kind string, to metav1.ConditionStatus) Entry {
		return Entry{At: noon.Add(time.Duration(minute) * time.Minute), Type: kind, To: to}
	}
	for name, tc := range map[string]struct {
		list []Entry
		want *Entry
	}{
		"When nothing is wrong there should be none":                     {list: []Entry{entry(0, "Available", yes)}},
		"When it was put right there should be none":                     {list: []Entry{entry(0, "Available", no), entry(1, "Available", yes)}},
		"When one thing led to others it should be the first":            {list: []Entry{entry(0, "A", yes), entry(1, "Etcd", no), entry(2, "A", no)}, want: &Entry{At: noon.Add(time.Minute), Type: "Etcd", To: no}},
		"When the first was put right and others last it should stay it": {list: []Entry{entry(1, "Etcd", no), entry(2, "A", no), entry(3, "Etcd", yes)}, want: &Entry{At: noon.Add(time.Minute), Type: "Etcd", To: no}},
		"When an older trouble is over it should be that of the new one": {list: []Entry{entry(1, "Etcd", no), entry(3, "Etcd", yes), entry(4, "A", no)}, want: &Entry{At: noon.Add(4 * time.Minute), Type: "A", To: no}},
		"When a condition does not count it should not":                  {list: []Entry{entry(1, "Size", no)}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(FirstFailure(tc.list, good)).To(Equal(tc.want)) })
	}
}
