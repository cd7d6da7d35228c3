package bundle

import (
	"fmt"
	"strings"

	"hcp.internal/platform/internal/contract/backups"
)

// SplitURL is the bucket and the name of s3://BUCKET/NAME.
func SplitURL(url string) (bucket, name string, err error) {
	rest, ok := strings.CutPrefix(url, backups.Scheme)
	bucket, name, slash := strings.Cut(rest, "/")
	if !ok || !slash || bucket == "" || name == "" {
		return "", "", fmt.Errorf("%q is no URL of a backup: want %sBUCKET/NAME", url, backups.Scheme)
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
	// Removed is how many older backups were deleted; Note is what could not be done.
	Removed int    `json:"removed,omitempty"`
	Note    string `json:"note,omitempty"`
}
