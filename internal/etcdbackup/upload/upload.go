package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/etcdbackup/job"
)

// terminationLog is where the kubelet reads what a container has to say.
const terminationLog = "/dev/termination-log"

// Upload is a snapshot on its way into object storage.
type Upload struct {
	// Path is the snapshot.
	Path string
	// StorageType is S3.
	StorageType string
	// Bucket and Region of S3; KMSKey encrypts the object there; empty: as the bucket has it.
	Bucket, Region, KMSKey string
	// Credentials is a shared credentials file, whose profile default may also name an endpoint_url; empty: those of the environment.
	Credentials string
	// KeyPrefix goes before the name of the object.
	KeyPrefix string
	// Result gets the URL; empty: /dev/termination-log.
	Result string
	Now    func() time.Time
}

// Command is the subcommand etcd-upload. Manifests call it by control-plane-operator, which hands it on.
func Command() *cobra.Command {
	u := Upload{Now: time.Now}
	cmd := &cobra.Command{
		Use:   "etcd-upload",
		Short: "Put a snapshot of etcd into object storage, and print its URL",
		Long: `Put a snapshot of etcd into object storage, and print its URL.

The snapshot is checked before, and the storage checks what it got by a SHA-256. An object that is there already is never overwritten.`,
		Example: "  control-plane-operator etcd-upload --snapshot-path snapshot.db --storage-type S3 --aws-bucket backups --aws-region us-east-1 --key-prefix demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return u.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&u.Path, "snapshot-path", "", "snapshot to upload")
	f.StringVar(&u.StorageType, "storage-type", "", "S3")
	f.StringVar(&u.Bucket, "aws-bucket", "", "bucket")
	f.StringVar(&u.Region, "aws-region", "", "region of the bucket")
	f.StringVar(&u.KMSKey, "aws-kms-key-arn", "", "key that S3 encrypts the object with")
	f.StringVar(&u.Credentials, "credentials-file", "", "shared credentials file; empty: the environment's")
	f.StringVar(&u.KeyPrefix, "key-prefix", "", "what the object's name begins with")
	for _, name := range []string{"snapshot-path", "storage-type", "key-prefix"} {
		_ = cmd.MarkFlagRequired(name) // only fails for a flag that isn't there
	}
	return cmd
}

// Run uploads, and prints the URL on out.
func (u Upload) Run(ctx context.Context, out, notes io.Writer) error {
	switch {
	case u.StorageType != "S3":
		return fmt.Errorf("unsupported storage type: %q (must be S3)", u.StorageType)
	case u.Bucket == "":
		return errors.New("--aws-bucket is required for storage type S3")
	case u.Region == "":
		return errors.New("--aws-region is required for storage type S3")
	}
	if _, err := os.Stat(u.Path); err != nil {
		return fmt.Errorf("snapshot file not accessible: %w", err)
	}
	if err := job.Check(u.Path); err != nil {
		return err
	}
	url, err := u.s3(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, url); err != nil {
		return err
	}
	result := u.Result
	if result == "" {
		result = terminationLog
	}
	if err := os.WriteFile(result, []byte(url), 0o644); err != nil {
		fmt.Fprintf(notes, "Warning: the URL could not be told to the operator: %v\n", err)
	}
	return nil
}

// key is the object's name: PREFIX/SECONDS.db.
func (u Upload) key() string {
	return fmt.Sprintf("%s/%d%s", strings.TrimSuffix(u.KeyPrefix, "/"), u.Now().Unix(), filepath.Ext(u.Path))
}
