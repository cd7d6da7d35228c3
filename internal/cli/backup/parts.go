package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
)

// otherBump leads beyond what a cluster has written since its newest backup, where the time doesn't.
const otherBump = 1_000_000_000

// bump is added to the revision of a snapshot, so that etcd begins with the microseconds since 1970. So whoever restores later begins higher, whichever backup that is of, and
// whatever was restored before: clients must never have seen the revisions that come, or they wait for them in silence. No cluster writes a million times a second, and revisions
// of clusters that earlier versions have restored, by a thousand for each second, are below. It is never more than the time says, or an older backup that is restored next would
// begin lower; except for a snapshot that is beyond the time, since its cluster was restored while the clock was ahead.
//
// Readers of JSON are exact up to 2⁵³, in the year 2255.
func bump(revision int64, now time.Time) uint64 {
	if lead := now.UnixMicro() - revision; lead > 0 {
		return uint64(lead)
	}
	return otherBump
}

// partsOf tells etcd what was checked of a backup, and how far its revisions lead.
func partsOf(m bundle.Manifest, now time.Time) map[string]backups.Part {
	parts := map[string]backups.Part{}
	for _, p := range m.Parts() {
		parts[p.Name] = backups.Part{SHA256: p.Snapshot.SHA256, RevisionBump: bump(p.Etcd.Revision, now)}
	}
	return parts
}

// bumpsOf are those of shards.
func bumpsOf(parts map[string]backups.Part) map[string]uint64 {
	var bumps map[string]uint64
	for name, part := range parts {
		if name == "" {
			continue
		}
		if bumps == nil {
			bumps = map[string]uint64{}
		}
		bumps[name] = part.RevisionBump
	}
	return bumps
}

// tell puts the parts of a backup into the data of Secret etcd-restore. trial is an object that could be created; it isn't: its answer has the time of the API server, which is
// the same for whoever restores from wherever.
func tell(ctx context.Context, c client.Client, trial client.Object, m bundle.Manifest, data map[string][]byte) (map[string]backups.Part, error) {
	trial.SetGenerateName(backups.Secret + "-")
	if err := c.Create(ctx, trial, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("asking the API server what time it is, by a dry run: %w", err)
	}
	parts := partsOf(m, trial.GetCreationTimestamp().Time)
	raw, err := json.Marshal(parts)
	if err != nil {
		return nil, fmt.Errorf("encoding what was checked: %w", err)
	}
	data[backups.PartsKey] = raw
	return parts, nil
}
