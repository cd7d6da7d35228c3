package backups

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PartsKey of Secret etcd-restore is what the command that restores has found in the backup, as JSON: a Part for each etcd, by the name of its shard, which is empty for the main
// etcd. A Secret that a person or an older version made has none.
const PartsKey = "parts"

// Part is what is known of the snapshot of one etcd before it is read.
type Part struct {
	// SHA256 is that of the file in the storage, as the manifest has it; empty: it isn't known. One key seals the backups of many clusters, so that the key alone doesn't show that
	// the file is still the one that was checked.
	SHA256 string `json:"sha256,omitempty"`
	// RevisionBump is added to the snapshot's revision; 0: it isn't known. All members of an etcd read the same one here.
	RevisionBump uint64 `json:"revisionBump,omitempty"`
}

// ReadParts reads them in the folder where the Secret is mounted; nil when it has none.
func ReadParts(dir string) (map[string]Part, error) {
	raw, err := os.ReadFile(filepath.Join(dir, PartsKey))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading key %s of Secret %s: %w", PartsKey, Secret, err)
	}
	parts := map[string]Part{}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, fmt.Errorf("reading key %s of Secret %s: %w", PartsKey, Secret, err)
	}
	return parts, nil
}
