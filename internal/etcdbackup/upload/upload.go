package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/etcdbackup/job"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
)

// terminationLog is where the kubelet reads what a container has to say.
const terminationLog = "/dev/termination-log"

// Upload is a snapshot on its way into a storage.
type Upload struct {
	// Path is the snapshot.
	Path string
	// StorageType is S3 or AzureBlob.
	StorageType string
	// Bucket and Region of S3; KMSKey encrypts the object there; empty: as the bucket has it.
	Bucket, Region, KMSKey string
	// Account and Container of Azure; Scope is the encryption scope that blobs are encrypted with there; empty: as the container has it. Endpoint is the URL of the
	// account; empty: as the credentials or the cloud have it.
	Account, Container, Scope, Endpoint string
	// Credentials is a shared credentials file, whose profile default may also name an endpoint_url, or credentials of Azure; empty: those of the environment.
	Credentials string
	// CABundle is what the endpoint is trusted by; empty: the system's. Volume is a folder that stands for S3; empty: S3.
	CABundle, Volume string
	// KeyFile has the key that everything is sealed with; empty: the snapshot is stored as it is, and objects are not.
	KeyFile string
	// Meta is a file with a manifest in which etcd and the files are missing; empty: the snapshot alone is stored. Objects are the packed objects of the cluster,
	// sealed already; empty: none.
	Meta, Objects string
	// Keep is how many backups of this cluster and schedule are kept in the storage; 0: all.
	Keep int
	// KeyPrefix goes before the name of the object.
	KeyPrefix string
	// Result gets the URL, and behind it a Summary as a line of JSON where there is a manifest; empty: /dev/termination-log.
	Result string
	Now    func() time.Time
}

// Commands are the subcommands etcd-upload, etcd-verify and etcd-fetch. Manifests call them by control-plane-operator, which hands them on.
func Commands() []*cobra.Command {
	return []*cobra.Command{uploadCommand(), verifyCommand(), fetchCommand()}
}

func uploadCommand() *cobra.Command {
	u := Upload{Now: time.Now}
	cmd := &cobra.Command{
		Use:   "etcd-upload",
		Short: "Upload a snapshot of etcd to object storage, and print its URL",
		Long: `Put a snapshot of etcd into object storage, and print its URL.

The snapshot is checked before, and the storage checks what it got by a SHA-256. An object that is there already is never overwritten. With --meta it is also read back
and compared, and a manifest is written last.`,
		Example: "  control-plane-operator etcd-upload --snapshot-path snapshot.db --storage-type S3 --aws-bucket backups --aws-region us-east-1 --key-prefix demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return u.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&u.Path, "snapshot-path", "", "snapshot to upload")
	f.StringVar(&u.StorageType, "storage-type", "", "S3 or AzureBlob")
	f.StringVar(&u.Bucket, "aws-bucket", "", "bucket")
	f.StringVar(&u.Region, "aws-region", "", "region of the bucket")
	f.StringVar(&u.KMSKey, "aws-kms-key-arn", "", "key that S3 encrypts the object with")
	f.StringVar(&u.Account, "azure-storage-account", "", "storage account")
	f.StringVar(&u.Container, "azure-container", "", "container of the storage account")
	f.StringVar(&u.Scope, "azure-encryption-scope", "", "encryption scope of the storage account that has the key to encrypt with; empty: as the container has it")
	f.StringVar(&u.Endpoint, "azure-endpoint", "", "URL of the storage account; empty: as the credentials have it, or https://ACCOUNT.blob.core.windows.net")
	f.StringVar(&u.Credentials, "credentials-file", "", "shared credentials file, or credentials of Azure; empty: the environment's")
	f.StringVar(&u.CABundle, "ca-bundle-file", "", "certificates that the storage is trusted by, in PEM; empty: the system's")
	f.StringVar(&u.Volume, "volume", "", "folder that stands for S3; empty: S3")
	f.StringVar(&u.KeyFile, "encryption-key-file", "", "key to seal everything with, 32 bytes or those in base64; empty: nothing is sealed")
	f.StringVar(&u.Meta, "meta", "", "manifest without what this command adds; empty: the snapshot is uploaded alone")
	f.StringVar(&u.Objects, "objects", "", "sealed objects of the cluster; empty: none")
	f.IntVar(&u.Keep, "keep", 0, "how many backups of this cluster and schedule stay in the storage; 0: all")
	f.StringVar(&u.KeyPrefix, "key-prefix", "", "what the object's name begins with")
	for _, name := range []string{"snapshot-path", "storage-type", "key-prefix"} {
		_ = cmd.MarkFlagRequired(name) // only fails for a flag that isn't there
	}
	return cmd
}

// Run uploads, and prints the URL on out.
func (u Upload) Run(ctx context.Context, out, notes io.Writer) error {
	at, err := u.where()
	if err != nil {
		return err
	}
	if _, err := os.Stat(u.Path); err != nil {
		return fmt.Errorf("snapshot file not accessible: %w", err)
	}
	if err := job.Check(u.Path); err != nil {
		return err
	}
	key, err := readKey(u.KeyFile)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, at)
	if err != nil {
		return err
	}
	t := transfer{Upload: u, store: s, key: key, notes: notes}
	result, err := t.run(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, result); err != nil {
		return err
	}
	t.tell(result)
	return nil
}

// where is the storage.
func (u Upload) where() (store.Options, error) {
	o := store.Options{Credentials: u.Credentials, CABundle: u.CABundle}
	switch u.StorageType {
	case string(hyperv1.S3BackupStorage):
		if u.Bucket == "" {
			return o, errors.New("--aws-bucket is required for storage type S3")
		}
		if u.Region == "" {
			return o, errors.New("--aws-region is required for storage type S3")
		}
		o.Bucket, o.Region, o.KMSKey, o.Volume = u.Bucket, u.Region, u.KMSKey, u.Volume
	case string(hyperv1.AzureBlobBackupStorage):
		if u.Container == "" {
			return o, errors.New("--azure-container is required for storage type AzureBlob")
		}
		if u.Account == "" {
			return o, errors.New("--azure-storage-account is required for storage type AzureBlob")
		}
		o.Bucket, o.Account, o.Scope, o.Endpoint = u.Container, u.Account, u.Scope, u.Endpoint
	default:
		return o, fmt.Errorf("unsupported storage type: %q (must be S3 or AzureBlob)", u.StorageType)
	}
	return o, nil
}

// readKey reads a key; nil for no file.
func readKey(file string) (bundle.Key, error) {
	if file == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the encryption key: %w", err)
	}
	return bundle.ParseKey(raw)
}

// transfer is one upload with what it needs.
type transfer struct {
	Upload
	store store.Store
	key   bundle.Key
	notes io.Writer
}

// run stores everything and returns what the operator is told.
func (t transfer) run(ctx context.Context) (string, error) {
	name := t.objectName()
	stem := strings.TrimSuffix(name, filepath.Ext(t.Path))
	if len(t.key) > 0 {
		name = stem + bundle.SealedSnapshotEnd
	}
	if t.Meta == "" {
		_, err := t.put(ctx, name, t.Path, t.key)
		return t.store.URL(name), err
	}
	m, err := t.manifest()
	if err != nil {
		return "", err
	}
	if err := t.putAll(ctx, stem, &m); err != nil {
		return "", errors.Join(err, t.undo(ctx, stem, m))
	}
	m.Key = t.key.Fingerprint()
	sum := bundle.SummaryOf(m)
	switch err := t.readBack(ctx, stem, m); {
	case errors.Is(err, store.ErrForbidden):
		sum.Note = "not read back: the credentials may only write"
	case err != nil:
		return "", errors.Join(fmt.Errorf("reading back what was written: %w", err), t.undo(ctx, stem, m))
	default:
		m.Verified, sum.Verified = true, true
	}
	raw, err := m.Encode(t.key)
	if err != nil {
		return "", err
	}
	if err := t.store.Put(ctx, stem+bundle.ManifestEnd, strings.NewReader(string(raw))); err != nil {
		return "", errors.Join(err, t.undo(ctx, stem, m))
	}
	return t.conclude(ctx, name, m, sum)
}

// conclude tells of a backup that is complete, and then deletes older ones: should that take too long, it is known where this one is.
func (t transfer) conclude(ctx context.Context, name string, m bundle.Manifest, sum bundle.Summary) (string, error) {
	result, err := t.result(name, sum)
	if err != nil {
		return "", err
	}
	t.tell(result)
	removed, note, err := t.prune(ctx, m)
	if err != nil {
		// The backup is good; that others stay is told, and tried again by the next one.
		note = joined(note, "older backups are kept: "+err.Error())
	}
	sum.Removed = removed
	if note != "" {
		sum.Note = joined(sum.Note, note)
		fmt.Fprintln(t.notes, "Warning: "+sum.Note)
	}
	return t.result(name, sum)
}

// result is what the operator is told.
func (t transfer) result(name string, sum bundle.Summary) (string, error) {
	line, err := json.Marshal(sum)
	return t.store.URL(name) + "\n" + string(line), err
}

// tell leaves the result where the operator finds it.
func (t transfer) tell(result string) {
	if err := os.WriteFile(cmp.Or(t.Result, terminationLog), []byte(result), 0o644); err != nil {
		fmt.Fprintf(t.notes, "Warning: reporting the URL to the operator: %v\n", err)
	}
}

// manifest reads what the operator knows, and adds what the snapshot says of itself.
func (t transfer) manifest() (bundle.Manifest, error) {
	raw, err := os.ReadFile(t.Meta)
	if err != nil {
		return bundle.Manifest{}, fmt.Errorf("reading the description of the backup: %w", err)
	}
	m := bundle.Manifest{}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("reading the description of the backup: %w", err)
	}
	m.Created = t.Now().UTC().Truncate(time.Second)
	if err := describe(t.Path, &m.Etcd); err != nil {
		return m, err
	}
	for i := range m.Shards {
		s := &m.Shards[i]
		file := t.shardFile(s.Name)
		if err := job.Check(file); err != nil {
			return m, fmt.Errorf("shard %s: %w", s.Name, err)
		}
		if err := describe(file, &s.Etcd); err != nil {
			return m, fmt.Errorf("shard %s: %w", s.Name, err)
		}
	}
	return m, nil
}

// describe adds what a snapshot says of itself.
func describe(file string, e *bundle.Etcd) error {
	status, err := snapshot.NewV3(zap.NewNop()).Status(file)
	if err != nil {
		return fmt.Errorf("the snapshot can't be opened: %w", err)
	}
	e.Revision, e.Version, e.Keys, e.Bytes = status.Revision, status.Version, status.TotalKey, status.TotalSize
	return nil
}

// shardFile is where the snapshot of a shard is, beside that of the main etcd.
func (t transfer) shardFile(shard string) string {
	return filepath.Join(filepath.Dir(t.Path), backups.EtcdOf(shard)+filepath.Ext(t.Path))
}

// putAll stores the snapshots of all etcds and the objects, and notes in the manifest what is in the storage, also when it fails.
func (t transfer) putAll(ctx context.Context, stem string, m *bundle.Manifest) (err error) {
	end := filepath.Ext(t.Path)
	if len(t.key) > 0 {
		end = bundle.SealedSnapshotEnd
	}
	if m.Snapshot, err = t.put(ctx, stem+end, t.Path, t.key); err != nil {
		return err
	}
	for i := range m.Shards {
		s := &m.Shards[i]
		if s.Snapshot, err = t.put(ctx, stem+bundle.ShardEnd(s.Name)+end, t.shardFile(s.Name), t.key); err != nil {
			return fmt.Errorf("shard %s: %w", s.Name, err)
		}
	}
	if t.Objects == "" || len(t.key) == 0 {
		return nil
	}
	objects, err := t.put(ctx, stem+bundle.ObjectsEnd, t.Objects, nil)
	if err == nil {
		m.Objects = &objects
	}
	return err
}

// put stores a file, sealed when there is a key, and says what went into the storage.
func (t transfer) put(ctx context.Context, name, file string, key bundle.Key) (bundle.File, error) {
	f, err := os.Open(file)
	if err != nil {
		return bundle.File{}, err
	}
	defer func() { _ = f.Close() }() // it is only read
	var r io.Reader = f
	if len(key) > 0 {
		if r, err = key.Seal(f, rand.Reader); err != nil {
			return bundle.File{}, err
		}
	}
	sum, n := sha256.New(), &counter{}
	if err := t.store.Put(ctx, name, io.TeeReader(r, io.MultiWriter(sum, n))); err != nil {
		return bundle.File{}, err
	}
	return bundle.File{Name: filepath.Base(name), Bytes: n.n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

// readBack reads what the storage has now.
func (t transfer) readBack(ctx context.Context, stem string, m bundle.Manifest) error {
	for _, p := range m.Parts() {
		if err := bundle.ReadPart(ctx, t.store, stem, p, t.key, io.Discard); err != nil {
			return err
		}
	}
	_, err := bundle.ReadObjects(ctx, t.store, stem, m, t.key)
	return err
}

// undo removes what a backup that failed has written, as far as the credentials allow. Files of others are none of the manifest.
func (t transfer) undo(ctx context.Context, stem string, m bundle.Manifest) error {
	for _, f := range m.Files() {
		if f.Name == "" {
			continue
		}
		if err := t.store.Delete(ctx, bundle.Beside(stem, f.Name)); err != nil && !errors.Is(err, store.ErrForbidden) {
			return err
		}
	}
	return nil
}

// objectName is the object's name: PREFIX/SECONDS.db.
func (u Upload) objectName() string {
	return fmt.Sprintf("%s/%d%s", strings.TrimSuffix(u.KeyPrefix, "/"), u.Now().Unix(), filepath.Ext(u.Path))
}
