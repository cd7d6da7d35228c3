package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
)

// fetchCommand is how etcd-restore reads what a plain download can't.
func fetchCommand() *cobra.Command {
	var dir, url, shard, file string
	cmd := &cobra.Command{
		Use:     "etcd-fetch",
		Short:   "Write the snapshot of a backup to a file, decrypted and compared with its manifest",
		Example: "  control-plane-operator etcd-fetch --url s3://backups/demo/1764000000.db.enc --output snapshot.db",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return fetchFrom(cmd.Context(), dir, url, shard, file) },
	}
	f := cmd.Flags()
	f.StringVar(&dir, "secret-dir", backups.Mount, "folder with the keys of Secret "+backups.Secret)
	f.StringVar(&url, "url", "", "URL of the snapshot: s3://BUCKET/NAME, or https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME")
	f.StringVar(&shard, "shard", "", "shard of etcd whose snapshot is read; no file is written when the backup has none of it and need not have; empty: the main etcd")
	f.StringVar(&file, "output", "", "file to write, which must not be there")
	for _, name := range []string{"url", "output"} {
		_ = cmd.MarkFlagRequired(name) // only fails for a flag that isn't there
	}
	return cmd
}

func fetchFrom(ctx context.Context, dir, url, shard, file string) error {
	o := store.Options{Region: "us-east-1"}
	if raw, err := os.ReadFile(filepath.Join(dir, backups.RegionKey)); err == nil {
		o.Region = strings.TrimSpace(string(raw))
	}
	for key, into := range map[string]*string{backups.CredentialsKey: &o.Credentials, backups.CABundleKey: &o.CABundle} {
		path := filepath.Join(dir, key)
		if _, err := os.Stat(path); err == nil {
			*into = path
		}
	}
	if o.Credentials == "" {
		return fmt.Errorf("%s needs credentials: Secret %s in the namespace of the control plane has no key %s", url, backups.Secret, backups.CredentialsKey)
	}
	var key bundle.Key
	var err error
	if path := filepath.Join(dir, backups.EncryptionKey); exists(path) {
		if key, err = readKey(path); err != nil {
			return err
		}
	}
	parts, err := backups.ReadParts(dir)
	if err != nil {
		return err
	}
	s, name, err := store.OpenURL(ctx, url, o)
	if err != nil {
		return err
	}
	m, err := bundle.ReadManifest(ctx, s, name, key)
	alone := errors.Is(err, store.ErrNotFound)
	if err != nil && !alone {
		return err
	}
	part, there := m.Part(shard)
	checked := parts[shard].SHA256
	switch {
	case shard != "" && (alone || !there):
		if checked != "" || required(dir, shard) {
			return fmt.Errorf("the backup no longer has shard %s, which it had when the restore began", shard)
		}
		return nil
	case checked != "" && alone:
		return fmt.Errorf("%s has no manifest any more, which it had when the restore began", s.URL(name))
	case checked != "" && part.Snapshot.SHA256 != checked:
		return fmt.Errorf("%s of %s is not the one that the restore has checked: its SHA-256 is %s, and was %s; somebody has replaced the backup since", part, s.URL(name), part.Snapshot.SHA256, checked)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if alone {
		// A snapshot without a manifest is one that somebody else made: its own sum says whether it is whole.
		err = plain(ctx, s, name, key, f)
	} else {
		err = bundle.ReadPart(ctx, s, name, part, key, f)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// required says whether a shard has to be in the backup.
func required(dir, shard string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, backups.ShardsKey))
	return err == nil && slices.Contains(strings.Split(strings.TrimSpace(string(raw)), ","), shard)
}

// plain reads a snapshot that has no manifest. With a key, only one whose name ends with .db need not be sealed.
func plain(ctx context.Context, s store.Store, name string, key bundle.Key, f *os.File) error {
	body, _, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it is only read
	r, err := bundle.OpenNamed(name, body, key)
	if err != nil {
		return fmt.Errorf("%s: %w", s.URL(name), err)
	}
	check := &bundle.Check{W: f}
	if _, err := io.Copy(check, r); err != nil {
		return err
	}
	return check.Err()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
