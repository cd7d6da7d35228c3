package upload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
)

// Verification reads a backup back and proves that etcd could start from it.
type Verification struct {
	Store store.Options
	// URL is that of the snapshot: s3://BUCKET/NAME, or https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME.
	URL, KeyFile string
	// Scratch is an empty folder with room for the database.
	Scratch string
	// Result gets a Summary; empty: /dev/termination-log.
	Result string
}

func verifyCommand() *cobra.Command {
	v := Verification{}
	cmd := &cobra.Command{
		Use:   "etcd-verify",
		Short: "Read a backup from its storage, and restore it into a temporary folder to verify it",
		Example: "  control-plane-operator etcd-verify --url s3://backups/demo/1764000000.db.enc --aws-region us-east-1 --credentials-file credentials \\\n" +
			"    --encryption-key-file key --scratch-dir /tmp/scratch",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return v.Run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&v.URL, "url", "", "URL of the snapshot")
	f.StringVar(&v.Store.Region, "aws-region", "", "region of the bucket")
	f.StringVar(&v.Store.Endpoint, "azure-endpoint", "", "URL of the storage account; empty: as the credentials have it, or one of Azure's")
	f.StringVar(&v.Store.Credentials, "credentials-file", "", "shared credentials file, or credentials of Azure; empty: the environment's")
	f.StringVar(&v.Store.CABundle, "ca-bundle-file", "", "certificates that the storage is trusted by, in PEM; empty: the system's")
	f.StringVar(&v.Store.Volume, "volume", "", "folder that stands for S3; empty: S3")
	f.StringVar(&v.KeyFile, "encryption-key-file", "", "key that the backup is sealed with; empty: it is not sealed")
	f.StringVar(&v.Scratch, "scratch-dir", "", "empty folder with room for the database twice")
	for _, name := range []string{"url", "scratch-dir"} {
		_ = cmd.MarkFlagRequired(name) // only fails for a flag that isn't there
	}
	return cmd
}

// Run verifies, and prints a Summary on out.
func (v Verification) Run(ctx context.Context, out io.Writer) error {
	key, err := readKey(v.KeyFile)
	if err != nil {
		return err
	}
	s, name, err := store.OpenURL(ctx, v.URL, v.Store)
	if err != nil {
		return err
	}
	m, err := bundle.ReadManifest(ctx, s, name, key)
	if err != nil {
		return err
	}
	for _, p := range m.Parts() {
		if err := v.part(ctx, s, name, p, key); err != nil {
			return err
		}
	}
	if _, err := bundle.ReadObjects(ctx, s, name, m, key); err != nil {
		return err
	}
	m.Verified = true
	line, err := json.Marshal(bundle.SummaryOf(m))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, string(line)); err != nil {
		return err
	}
	if v.Result == "" {
		v.Result = terminationLog
	}
	return os.WriteFile(v.Result, line, 0o644)
}

// part reads the snapshot of one etcd and restores it. What it has written is removed, so that the next one has the room.
func (v Verification) part(ctx context.Context, s store.Store, name string, p bundle.Shard, key bundle.Key) error {
	file := filepath.Join(v.Scratch, "snapshot.db")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }() // scratch goes with its pod
	if err := errors.Join(bundle.ReadPart(ctx, s, name, p, key, f), f.Close()); err != nil {
		return err
	}
	api := snapshot.NewV3(zap.NewNop())
	status, err := api.Status(file)
	if err != nil {
		return fmt.Errorf("%s can't be opened: %w", p, err)
	}
	if status.Revision != p.Etcd.Revision || status.TotalKey != p.Etcd.Keys {
		return fmt.Errorf("%s has revision %d and %d keys, and the manifest says %d and %d", p, status.Revision, status.TotalKey, p.Etcd.Revision, p.Etcd.Keys)
	}
	const member, peer = "etcd-0", "https://127.0.0.1:2380"
	restored := filepath.Join(v.Scratch, "data")
	defer func() { _ = os.RemoveAll(restored) }() // scratch goes with its pod
	if err := api.Restore(snapshot.RestoreConfig{SnapshotPath: file, OutputDataDir: restored, Name: member, PeerURLs: []string{peer},
		InitialCluster: member + "=" + peer, InitialClusterToken: "verify"}); err != nil {
		return fmt.Errorf("%s can't be restored: %w", p, err)
	}
	return nil
}
