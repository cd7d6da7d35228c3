package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"hcp.internal/platform/internal/etcdbackup/bundle"
)

// dialTimeout bounds the way to etcd; the snapshot as a whole is bounded by the Job.
const dialTimeout = 30 * time.Second

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
	check := &bundle.Check{W: f}
	_, err = io.Copy(check, r)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("saving the snapshot after %d bytes: %w", check.Bytes(), err)
	}
	if err := check.Err(); err != nil {
		return 0, fmt.Errorf("%s: %w", part, err)
	}
	return check.Bytes(), os.Rename(part, out)
}

// Check says whether a file is a whole snapshot of etcd.
func Check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	check := &bundle.Check{}
	if _, err := io.Copy(check, f); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := check.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
