package job

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/companion"
)

// maxSaid bounds what of another program's words goes into an error.
const maxSaid = 1024

// FetchSnapshot writes the snapshot of s3://BUCKET/NAME, or that of a shard beside it, into a file, opened and checked. There is no file when the backup has nothing of the shard. It is how etcd-restore reads what a plain download can't: the program that speaks to
// clouds does it.
func FetchSnapshot(ctx context.Context, url, shard, file string) error {
	program, err := companion.Beside("hcp-cloud")
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, program, "etcd-fetch", "--url", url, "--shard", shard, "--output", file).CombinedOutput()
	if err != nil {
		_ = os.Remove(file) // a part of it must not be taken for a snapshot
		return fmt.Errorf("%s: %w", clip.Over(strings.TrimSpace(strings.TrimPrefix(string(out), "Error: ")), maxSaid, " …"), err)
	}
	return nil
}
