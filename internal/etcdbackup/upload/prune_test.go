package upload

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
)

// busy is a storage where more happens.
type busy struct {
	shelf
	// reads counts, list comes before a list, and get before a file is read.
	reads int
	list  func(most int) []store.Item
	get   func(ctx context.Context) error
}

func (b *busy) List(ctx context.Context, prefix string, most int) ([]store.Item, error) {
	items, err := b.shelf.List(ctx, prefix, most)
	if b.list != nil {
		items = append(items, b.list(most)...)
	}
	return items[:min(len(items), most)], err
}

func (b *busy) Get(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	b.reads++
	if b.get != nil {
		if err := b.get(ctx); err != nil {
			return nil, 0, err
		}
	}
	return b.shelf.Get(ctx, name)
}

// filled has n backups, demo/0 to demo/n-1, of which the last was made now.
func filled(t *testing.T, n int) (b *busy, newest bundle.Manifest) {
	b = &busy{shelf: shelf{}}
	for i := range n {
		newest = b.hold(t, fmt.Sprintf("demo/%d", i), now.Add(time.Duration(i-n+1)*time.Hour), key)
	}
	return b, newest
}

func keeping(n int, s store.Store) transfer {
	return transfer{Upload: Upload{KeyPrefix: "demo/", Keep: n}, store: s, key: key}
}

func TestPruneBounds(t *testing.T) {
	t.Run("When there are no more than are kept no manifest should be read", func(t *testing.T) {
		g := NewWithT(t)
		s, newest := filled(t, 5)
		removed, note, err := keeping(5, s).prune(t.Context(), newest)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(removed).To(BeZero())
		g.Expect(note).To(BeEmpty())
		g.Expect(s.reads).To(BeZero())
	})
	t.Run("When numbers have more digits the newest should be kept", func(t *testing.T) {
		g := NewWithT(t)
		s, newest := filled(t, 12)
		removed, _, err := keeping(3, s).prune(t.Context(), newest)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(removed).To(Equal(9))
		g.Expect(s.shelf).To(And(HaveLen(6), HaveKey("demo/9.json"), HaveKey("demo/10.json"), HaveKey("demo/11.json")))
	})
	t.Run("When another schedule has the same folder its backups should neither count nor go", func(t *testing.T) {
		g := NewWithT(t)
		s, _ := filled(t, 4)
		weekly := bundle.Manifest{Created: now, Schedule: "weekly", Cluster: bundle.Cluster{UID: "1"}}
		removed, _, err := keeping(1, s).prune(t.Context(), weekly)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(removed).To(BeZero())
		g.Expect(s.shelf).To(HaveLen(8))
	})
	t.Run("When the list is cut it should say so, and delete the oldest of what it has", func(t *testing.T) {
		g := NewWithT(t)
		s, newest := filled(t, 4)
		s.list = func(most int) []store.Item {
			more := make([]store.Item, most)
			for i := range more {
				more[i].Name = "demo/x/y"
			}
			return more
		}
		removed, note, err := keeping(3, s).prune(t.Context(), newest)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(removed).To(Equal(1))
		g.Expect(note).To(ContainSubstring("the folder has more than 200000 files, and the rest was not looked at"))
		g.Expect(s.shelf).NotTo(HaveKey("demo/0.json"))
	})
	t.Run("When a schedule keeps as many as it may their files should be listed", func(t *testing.T) {
		g := NewWithT(t)
		s, newest := filled(t, 2)
		s.list = func(int) []store.Item {
			var more []store.Item
			for i := range 10_000 {
				for _, end := range []string{"db.enc", "objects", "etcd-events.db.enc"} {
					more = append(more, store.Item{Name: fmt.Sprintf("demo/%d.%s", 2+i, end)})
				}
			}
			return more
		}
		_, note, err := keeping(1, s).prune(t.Context(), newest)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(note).To(BeEmpty())
		g.Expect(s.shelf).NotTo(HaveKey("demo/0.json"))
	})
	t.Run("When the storage is slow it should end in time, say so, and delete nothing that may be of use", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			s, newest := filled(t, 10)
			s.get = func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(30 * time.Second):
					return nil
				}
			}
			began := time.Now()
			removed, _, err := keeping(8, s).prune(t.Context(), newest)
			g.Expect(time.Since(began)).To(Equal(pruneTime))
			g.Expect(removed).To(BeZero())
			g.Expect(err).To(MatchError(ContainSubstring("2m0s were not enough: 3 of 10 manifests of the folder had been read")))
			g.Expect(s.shelf).To(HaveLen(20))
		})
	})
}

func TestToldFirst(t *testing.T) {
	g, file := NewWithT(t), filepath.Join(t.TempDir(), "result")
	s, newest := filled(t, 3)
	told := ""
	s.list = func(int) []store.Item {
		raw, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred(), "When older backups are looked for the operator should know of this one")
		told = string(raw)
		return nil
	}
	of := keeping(2, s)
	of.Result, of.notes = file, io.Discard
	result, err := of.conclude(t.Context(), "demo/2.db.enc", newest, bundle.SummaryOf(newest))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(told).To(HavePrefix("s3://backups/demo/2.db.enc\n{"))
	g.Expect(told).NotTo(ContainSubstring("removed"))
	g.Expect(result).To(ContainSubstring(`"removed":1`))
}
