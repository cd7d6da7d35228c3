package backup

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
)

// TestBump restores backups of a cluster one after another, in any order, and looks at what clients see.
func TestBump(t *testing.T) {
	at := time.Unix(1764000000, 0)
	t.Run("When an older backup is restored after a newer one revisions should be higher all the same", func(t *testing.T) {
		g := NewWithT(t)
		first := 50_000_000 + bump(50_000_000, at)
		g.Expect(46_000_000 + bump(46_000_000, at.Add(10*time.Minute))).To(BeNumerically(">", first))
	})
	t.Run("When an earlier version has restored in place revisions should be higher than those that it gave", func(t *testing.T) {
		g := NewWithT(t)
		earlier := uint64(50_000_000)
		for i := range 10 { // each from a backup that was made after the one before
			earlier += uint64(at.Add(time.Duration(i)*time.Minute).Unix()) * 1000
		}
		g.Expect(9 + bump(9, at.Add(time.Hour))).To(BeNumerically(">", earlier))
	})
	t.Run("When the revision of a snapshot isn't known it should lead as far", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(bump(0, at)).To(BeEquivalentTo(at.UnixMicro()))
	})
	t.Run("When a snapshot is beyond the time it should lead beyond what was written since", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(bump(at.UnixMicro()+5, at)).To(BeEquivalentTo(otherBump))
	})
	t.Run("When a cluster is saved and restored in any order no revision should come twice", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			live, now := uint64(rapid.IntRange(1, 100_000_000).Draw(rt, "revision")), at
			saved := []uint64{live}
			for range rapid.IntRange(1, 20).Draw(rt, "steps") {
				seconds := rapid.IntRange(1, 3600).Draw(rt, "seconds")
				now = now.Add(time.Duration(seconds) * time.Second)
				live += uint64(rapid.IntRange(0, 10_000*seconds).Draw(rt, "writes"))
				if rapid.Bool().Draw(rt, "save") {
					saved = append(saved, live)
					continue
				}
				from := rapid.SampledFrom(saved).Draw(rt, "from")
				if next := from + bump(int64(from), now); next <= live {
					rt.Fatalf("clients have seen %d, and the restore begins with %d", live, next)
				} else {
					live = next
				}
			}
		})
	})
}

func TestPartsOf(t *testing.T) {
	t.Run("When there are shards each etcd should lead from its own revision, and have its own sum", func(t *testing.T) {
		g, at := NewWithT(t), time.Unix(1764000000, 0)
		s := sharded()
		s.manifest.Snapshot, s.manifest.Shards[0].Snapshot = bundle.File{SHA256: "main"}, bundle.File{SHA256: "leases"}
		parts := partsOf(s.manifest, at)
		g.Expect(parts).To(Equal(map[string]backups.Part{
			"":       {SHA256: "main", RevisionBump: uint64(at.UnixMicro()) - 9},
			"leases": {SHA256: "leases", RevisionBump: uint64(at.UnixMicro()) - 4},
		}))
		g.Expect(bumpsOf(parts)).To(Equal(map[string]uint64{"leases": uint64(at.UnixMicro()) - 4}))
	})
}
