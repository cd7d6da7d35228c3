package hotloop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	label := func(returns int, writers ...string) fieldEvidence {
		return fieldEvidence{Path: "spec.selector.matchLabels.x", Returns: returns, Writers: writers}
	}
	ready := func(returns int, writers ...string) fieldEvidence {
		return fieldEvidence{Path: "status.readyReplicas", Returns: returns, Writers: writers}
	}
	for name, tc := range map[string]struct {
		seen evidence
		want verdict
	}{
		"When nothing was seen it should find nothing": {},
		"When two take a label out and in it should name both and the label": {
			seen: evidence{Writes: 40, Fields: []fieldEvidence{label(12, "adds", "removes")}},
			want: verdict{Loop: Fight, Paths: []string{"spec.selector.matchLabels.x"}, Writers: []string{"adds", "removes"}},
		},
		"When a field has returned some times only it should wait": {
			seen: evidence{Writes: 40, Fields: []fieldEvidence{label(11, "adds", "removes")}},
		},
		"When one reports of a Pod that crashes it should wait": {
			seen: evidence{Writes: 40, Fields: []fieldEvidence{ready(20, "kube-controller-manager")}},
		},
		"When two report the opposite it should name both": {
			seen: evidence{Writes: 40, Fields: []fieldEvidence{ready(20, "a", "b")}},
			want: verdict{Loop: Fight, Paths: []string{"status.readyReplicas"}, Writers: []string{"a", "b"}},
		},
		"When the same status is written all the time it should be a storm": {
			seen: evidence{Writes: 700, StatusWrites: 650, Looks: stormLooks, Writers: []string{"a"}},
			want: verdict{Loop: Storm, Writers: []string{"a"}},
		},
		"When it was hardly looked at it should wait, for it may be a fight": {
			seen: evidence{Writes: 700, StatusWrites: 700, Looks: stormLooks - 1, Fields: []fieldEvidence{label(fightReturns-1, "adds", "removes")}, Writers: []string{"adds", "removes"}},
		},
		"When it could not be looked at, as others were, it should be a storm": {
			seen: evidence{Writes: 700, StatusWrites: 650, Unseen: true},
			want: verdict{Loop: Storm},
		},
		"When a program changes a spec all the time it should be that program's business": {
			seen: evidence{Writes: 700, StatusWrites: 50, Looks: stormLooks, Writers: []string{"a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(decide(tc.seen)).To(BeComparableTo(tc.want))
		})
	}
}

func TestDecideAnything(t *testing.T) {
	writers := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string])
	fields := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) fieldEvidence {
		w := writers.Draw(t, "writers")
		slices.Sort(w)
		return fieldEvidence{Path: rapid.SampledFrom([]string{"spec.a", "spec.b", "status.a", "metadata.labels.x"}).Draw(t, "path"),
			Returns: rapid.IntRange(0, 100).Draw(t, "returns"), Writers: w}
	}), 0, 4, func(f fieldEvidence) string { return f.Path })
	rapid.Check(t, func(t *rapid.T) {
		e := evidence{Fields: fields.Draw(t, "fields"), StatusWrites: rapid.IntRange(0, 1000).Draw(t, "status"), Looks: rapid.IntRange(0, 2*stormLooks).Draw(t, "looks")}
		e.Writes = e.StatusWrites + rapid.IntRange(0, 100).Draw(t, "more")
		v := decide(e)
		most := 0
		for _, f := range e.Fields {
			most = max(most, f.Returns)
		}
		switch v.Loop {
		case Fight:
			if most < fightReturns || len(v.Paths) == 0 || !slices.IsSorted(v.Writers) {
				t.Fatalf("a fight is found in %+v: %+v", e, v)
			}
		case Storm:
			if e.StatusWrites < stormWrites || e.Looks < stormLooks || len(v.Paths) > 0 {
				t.Fatalf("a storm is found in %+v: %+v", e, v)
			}
		case "":
			if most >= flappingReturns || e.StatusWrites >= stormWrites && e.Looks >= stormLooks {
				t.Fatalf("nothing is found in %+v", e)
			}
		}
		// More of the same never makes a loop look better.
		more := e
		more.Fields = slices.Clone(e.Fields)
		for i := range more.Fields {
			more.Fields[i].Returns *= 2
		}
		if v.Loop == Fight && decide(more).Loop != Fight {
			t.Fatalf("twice as much of %+v is found to be better", e)
		}
		if len(v.note(e.Writes)) > 1000 {
			t.Fatal("the note is too long for an event")
		}
	})
}

func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		var all []time.Time
		now := noon
		for range rapid.IntRange(0, 200).Draw(t, "writes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90_000).Draw(t, "ms")) * time.Millisecond)
			w.add(now)
			all = append(all, now)
		}
		now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "later")) * time.Second)
		surely, maybe := 0, 0
		for _, at := range all {
			if now.Sub(at) < Window-Window/slots {
				surely++
			}
			if now.Sub(at) <= Window {
				maybe++
			}
		}
		if got := w.sum(now); got < surely || got > maybe {
			t.Fatal(fmt.Sprintf("%d within the window, want %d to %d", got, surely, maybe))
		}
	})
}
