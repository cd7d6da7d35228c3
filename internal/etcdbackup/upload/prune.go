package upload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hcp.internal/platform/internal/etcdbackup/bundle"
)

const (
	// maxListed bounds how many files retention lists: those of the 10,000 backups that a schedule may keep, with all shards.
	maxListed = 200_000
	// pruneTime bounds retention: the Job that it is a part of may take a quarter of an hour, and the backup is complete before.
	pruneTime = 2 * time.Minute
	// ahead is how far the clocks of two nodes may differ: retention counts no backup that was made later than that after the newest.
	ahead = 10 * time.Minute
)

// prune deletes the oldest backups of the same cluster and schedule beyond those that are kept: the manifest first, so that what is left of an interruption is no
// backup any more. note is what should be told of those that it left alone.
//
// Manifests are read from the newest on, by the time in their names, which they repeat: schedules may share a folder, and only the manifest tells whose a backup
// is. So what goes is known to be older than as many as are kept, also when time ends before all are read. Where there are no more manifests than are kept, none is
// read.
func (t transfer) prune(ctx context.Context, m bundle.Manifest) (removed int, note string, _ error) {
	if t.Keep <= 0 || m.Cluster.UID == "" {
		return 0, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	names, note, err := t.manifests(ctx)
	if err != nil || len(names) <= t.Keep {
		return 0, note, err
	}
	kept, future := 0, 0
	for i, name := range names {
		o, same := t.same(ctx, name, m)
		if ctx.Err() != nil {
			return removed, note, fmt.Errorf("%s were not enough: %d of %d manifests of the folder had been read; use a folder (keyPrefix) for each schedule, or keep fewer", pruneTime, i, len(names))
		}
		switch {
		case !same:
		case o.Created.After(m.Created.Add(ahead)):
			future++
		case kept < t.Keep:
			kept++
		default:
			if err := t.remove(ctx, name, o); err != nil {
				return removed, note, err
			}
			removed++
		}
	}
	if future > 0 {
		note = joined(note, fmt.Sprintf("%d backups dated more than %s in the future are kept and not counted: check the clocks, or delete them", future, ahead))
	}
	return removed, note, nil
}

// manifests are the names of those in the folder, the newest first. note tells when there may be more.
func (t transfer) manifests(ctx context.Context) (names []string, note string, _ error) {
	folder := strings.TrimSuffix(t.KeyPrefix, "/") + "/"
	items, err := t.store.List(ctx, folder, maxListed)
	if err != nil {
		return nil, "", err
	}
	if len(items) >= maxListed {
		// They come in the order of their names: the newest are missing, and what is beyond those that are kept is so all the more.
		note = fmt.Sprintf("the folder has more than %d files, and the rest was not looked at: use a folder (keyPrefix) for each cluster and schedule", maxListed)
	}
	for _, item := range items {
		if base := strings.TrimPrefix(item.Name, folder); strings.HasSuffix(base, bundle.ManifestEnd) && !strings.Contains(base, "/") {
			names = append(names, item.Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(b, a)) }) // numbers, one as long as the other
	return names, note, nil
}

// same reads a manifest, and says whether it is of the same cluster and schedule. Whoever may write to the storage must not make genuine backups go by adding to them,
// so with a key only those that it made count. Without one nothing proves that, but what says that it was made later than now is none of them.
func (t transfer) same(ctx context.Context, name string, m bundle.Manifest) (bundle.Manifest, bool) {
	// One that another key or no key made, or that is damaged, is not ours to delete. A copy under another name is no backup of its own, and can't be read.
	o, err := bundle.ReadManifest(ctx, t.store, name, t.key)
	return o, err == nil && o.Key == t.key.Fingerprint() && o.Cluster.UID == m.Cluster.UID && o.Schedule == m.Schedule
}

// remove deletes a backup by its manifest.
func (t transfer) remove(ctx context.Context, name string, o bundle.Manifest) error {
	files := []string{name}
	for _, f := range o.Files() {
		files = append(files, bundle.Beside(name, f.Name))
	}
	for _, file := range files {
		if err := t.store.Delete(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// joined are notes as one.
func joined(a, b string) string { return strings.TrimPrefix(a+"; "+b, "; ") }
