package job

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// maxSnapshot is etcd's largest database and the sum behind it.
	maxSnapshot = 8<<30 + 1<<20
	// dialTimeout bounds the way to etcd; the snapshot as a whole is bounded by the Job.
	dialTimeout = 30 * time.Second
)

func snapshotCommand() *cobra.Command {
	var endpoint, out string
	var tls transport.TLSInfo
	cmd := &cobra.Command{
		Use:   "etcd-snapshot",
		Short: "Write a snapshot of etcd into a file, and check it",
		Example: "  control-plane-operator etcd-snapshot --endpoint https://etcd-client.clusters-demo.svc:2379 --cacert ca.crt --cert etcd-client.crt \\\n" +
			"    --key etcd-client.key --output snapshot.db",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := tls.ClientConfig()
			if err != nil {
				return fmt.Errorf("reading the client certificate of etcd: %w", err)
			}
			c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: config, DialTimeout: dialTimeout, Logger: zap.NewNop(), Context: cmd.Context()})
			if err != nil {
				return fmt.Errorf("connecting to etcd: %w", err)
			}
			defer func() { _ = c.Close() }() // nothing is lost: it was only read
			size, err := save(cmd.Context(), c, out)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "saved a snapshot of %d bytes in %s\n", size, out)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&endpoint, "endpoint", "", "client URL of etcd")
	f.StringVar(&tls.TrustedCAFile, "cacert", "", "certificate authority of etcd")
	f.StringVar(&tls.CertFile, "cert", "", "client certificate")
	f.StringVar(&tls.KeyFile, "key", "", "its key")
	f.StringVar(&out, "output", "", "file to write")
	for _, name := range []string{"endpoint", "cacert", "cert", "key", "output"} {
		_ = cmd.MarkFlagRequired(name) // only fails for a flag that isn't there
	}
	return cmd
}

// save writes a snapshot; the file appears only when it is whole.
func save(ctx context.Context, m clientv3.Maintenance, out string) (int64, error) {
	r, err := m.Snapshot(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking etcd for a snapshot: %w", err)
	}
	defer func() { _ = r.Close() }() // it was read to the end, or is given up
	part := out + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(f, io.LimitReader(r, maxSnapshot+1))
	if err == nil && size > maxSnapshot {
		err = fmt.Errorf("etcd sends more than %d bytes", int64(maxSnapshot))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("saving the snapshot after %d bytes: %w", size, err)
	}
	if err := Check(part); err != nil {
		return 0, err
	}
	return size, os.Rename(part, out)
}

// Check says whether a file is a whole snapshot: etcd puts the SHA-256 of the database behind it.
func Check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// A database is a multiple of 512 bytes, so the sum shows by the length.
	if info.Size() < 512+sha256.Size || info.Size()%512 != sha256.Size {
		return fmt.Errorf("%s is no whole snapshot: %d bytes do not end with a sum", path, info.Size())
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, info.Size()-sha256.Size); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	var want [sha256.Size]byte
	if _, err := io.ReadFull(f, want[:]); err != nil {
		return fmt.Errorf("reading the sum of %s: %w", path, err)
	}
	if got := [sha256.Size]byte(sum.Sum(nil)); got != want {
		return fmt.Errorf("%s is damaged: its SHA-256 is %x, and behind it stands %x", path, got, want)
	}
	return nil
}
