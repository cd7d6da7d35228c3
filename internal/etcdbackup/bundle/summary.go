package bundle

import (
	"fmt"
	"strings"

	"hcp.internal/platform/internal/contract/backups"
)

// SummaryOf is what a manifest tells.
func SummaryOf(m Manifest) Summary {
	return Summary{Revision: m.Etcd.Revision, Keys: m.Etcd.Keys, Bytes: m.Etcd.Bytes, Stored: m.Stored(), Key: m.Key, Objects: m.Objects != nil, Verified: m.Verified, Shards: m.ShardNames()}
}

// SplitURL is the bucket and the name of s3://BUCKET/NAME.
func SplitURL(url string) (bucket, name string, err error) {
	rest, ok := strings.CutPrefix(url, backups.Scheme)
	bucket, name, slash := strings.Cut(rest, "/")
	if !ok || !slash || bucket == "" || name == "" {
		return "", "", fmt.Errorf("%q is not the URL of a backup: write %sBUCKET/NAME", url, backups.Scheme)
	}
	return bucket, name, nil
}

// Summary is what the operator is told of a backup.
type Summary struct {
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"`
	Bytes    int64  `json:"bytes"`
	Stored   int64  `json:"stored"`
	Key      string `json:"key,omitempty"`
	Objects  bool   `json:"objects"`
	Verified bool   `json:"verified"`
	// Shards are the other etcds that were saved. Revision, Keys and Bytes are of the main one, Stored of all.
	Shards []string `json:"shards,omitempty"`
	// Removed is how many older backups were deleted; Note is what could not be done.
	Removed int    `json:"removed,omitempty"`
	Note    string `json:"note,omitempty"`
}
