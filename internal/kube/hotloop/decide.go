package hotloop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// Window is how far back writes count.
	Window = 5 * time.Minute
	// suspicious is from how many writes within Window on an object is taken apart. Objects that come up are written about as often.
	suspicious = 8
	// fightReturns is how often within Window a field may return to a value that it had before. A Pod that crashes makes counters go up and
	// down about ten times, until its restarts are far apart.
	fightReturns = 12
	// flappingReturns is the same for a field of status that has one writer: what it reports may really go back and forth.
	flappingReturns = 60
	// stormWrites is how many writes within Window, two a second, are too many whatever they change, unless somebody changes the spec.
	stormWrites = 600
	// stormLooks is how often an object was taken apart before it is no fight: on a busy machine 600 writes may pass between a few looks.
	stormLooks = 4 * fightReturns
	// calmWrites: a loop is over when there are fewer within Window.
	calmWrites = suspicious
)

// Kinds of loops, which are also the values of a label.
const (
	// Fight: a field goes back and forth.
	Fight = "Fight"
	// Storm: written all the time, and no field was seen that goes back and forth.
	Storm = "Storm"
)

// evidence is what decide may look at: what happened to one object within Window.
type evidence struct {
	// Writes are all, StatusWrites those that left the generation as it was.
	Writes, StatusWrites int
	// Looks is how often it was taken apart; Unseen: never, as other suspects were.
	Looks  int
	Unseen bool
	// Fields are those that returned to a value that they had before.
	Fields []fieldEvidence
	// Writers of any field, sorted.
	Writers []string
}

type fieldEvidence struct {
	Path    string
	Returns int
	Writers []string // sorted
}

// verdict says what an object suffers from; the zero verdict: nothing.
type verdict struct {
	Loop    string
	Paths   []string // that go back and forth, the most lively first
	Writers []string // sorted
}

// decide never finds a loop in fewer than fightReturns writes, and never a Fight without a field that goes back and forth.
func decide(e evidence) verdict {
	var lively []fieldEvidence
	for _, f := range e.Fields {
		limit := fightReturns
		if status(f.Path) && len(f.Writers) < 2 {
			limit = flappingReturns
		}
		if f.Returns >= limit {
			lively = append(lively, f)
		}
	}
	if len(lively) == 0 {
		if e.StatusWrites >= stormWrites && (e.Unseen || e.Looks >= stormLooks) {
			return verdict{Loop: Storm, Writers: e.Writers}
		}
		return verdict{}
	}
	slices.SortFunc(lively, func(a, b fieldEvidence) int {
		return cmp.Or(cmp.Compare(b.Returns, a.Returns), cmp.Compare(a.Path, b.Path))
	})
	v := verdict{Loop: Fight}
	for _, f := range lively {
		v.Paths = append(v.Paths, f.Path)
		v.Writers = append(v.Writers, f.Writers...)
	}
	slices.Sort(v.Writers)
	v.Writers = slices.Compact(v.Writers)
	return v
}

// over says that a loop has ended.
func over(e evidence) bool { return e.Writes < calmWrites }

func status(path string) bool { return path == "status" || strings.HasPrefix(path, "status.") }

const (
	// maxPaths and maxWriters are named in texts.
	maxPaths   = 5
	maxWriters = 5
)

// note is what people read of a loop.
func (v verdict) note(writes int) string {
	who := "by unknown writers"
	if len(v.Writers) > 0 {
		who = "by " + list(v.Writers, maxWriters)
	}
	text := fmt.Sprintf("Written %d times within %s %s", writes, short(Window), who)
	if len(v.Paths) > 0 {
		return text + "; these fields go back and forth: " + list(v.Paths, maxPaths)
	}
	return text + ", though its spec does not change"
}

func list(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// short prints whole minutes as people do.
func short(d time.Duration) string {
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}
