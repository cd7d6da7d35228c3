// Package etcdrestore fills the empty data directory of an etcd member from a snapshot, before etcd starts.
//
// It is a subcommand of control-plane-operator and not of the sidecar binary, because it needs etcd's own storage code, which
// would make every sidecar 10 MiB larger in memory. hcp-sidecar's "etcd-init restore" hands over to it.
package etcdrestore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/sidecar/etcdinit"
)

const (
	// maxSnapshot bounds a download: etcd's quota is 8 GiB, and a snapshot has the size of the database plus a checksum.
	maxSnapshot = 8<<30 + 1<<20
	// stagingName is where a restore is prepared, beside the data directory so that the last step is a rename; beforeName is where data that
	// is replaced lies between two renames, preparedName what replaces it until all etcds of a control plane have theirs.
	stagingName, beforeName, preparedName = ".restore", ".before", ".prepared"
	// forName is a file beside prepared data that says what it is of.
	forName = "for"
	// revisionBump is added to the restored cluster's revision where nobody has told another one, and everything below is marked compacted. Clients that
	// watched the lost cluster hold newer revisions than the snapshot has; without the bump they would miss changes silently.
	revisionBump = 1_000_000_000
	// headerTimeout bounds the wait for a server to begin answering.
	headerTimeout = 30 * time.Second
)

// Restore fills an empty data directory from a snapshot.
type Restore struct {
	URL           string // of the snapshot; its query may be a signature and is never logged
	Shard         string // of etcd that is restored; empty: the main etcd. A shard that the backup has nothing of begins empty
	SHA256        string // of the file, in hex; empty: only the checksum inside the snapshot is verified
	Template      string // etcd's configuration as a template, for the members and the token
	Name, DataDir string // override the template's when set
	MaxBytes      int64
	// Replace has data that is there be replaced, once the snapshot has been restored beside it; otherwise nothing is done when there is data.
	Replace bool
	// Prepare restores beside the data that is there, and leaves it to a run with Replace to exchange them. That needs no storage any more.
	Prepare bool
	// Discard gives a restore up: what runs with Prepare and Replace have left is deleted, and the data of before is where it was. Nothing is restored.
	Discard bool
	// RevisionBump is added to the snapshot's revision; 0: what the Secret tells, else revisionBump. It must be the same for all members of a cluster.
	RevisionBump uint64
	// Secret is the folder with the keys of the Secret by which the snapshot is read.
	Secret string
	Log    io.Writer
	HTTP   *http.Client
	// Fetch reads what is no plain download into a file, checked; nil: nothing else is read.
	Fetch Fetch
}

// Fetch writes the snapshot of a URL, or that of a shard beside it, into a new file, or none when the backup has nothing of the shard and need not have. Its errors show no
// secrets.
type Fetch func(ctx context.Context, url, shard, file string) error

// Run restores, or does nothing when there is data. A run that was killed leaves only the staging folder, which the next
// one clears.
func (r Restore) Run(ctx context.Context) error {
	cfg, settings, err := etcdinit.Load(r.Template, r.Name, r.DataDir)
	if err != nil {
		return err
	}
	dataDir := settings.DataDir
	if r.Discard {
		return r.discard(dataDir)
	}
	entries, err := os.ReadDir(dataDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("looking into %s: %w", dataDir, err)
	}
	if len(entries) > 0 && !r.Replace && !r.Prepare {
		fmt.Fprintf(r.Log, "%s has data: nothing to restore\n", dataDir)
		return nil
	}
	if r.RevisionBump, err = r.bump(); err != nil {
		return err
	}
	staging, prepared := filepath.Join(filepath.Dir(dataDir), stagingName), filepath.Join(filepath.Dir(dataDir), preparedName)
	if r.Replace {
		if done, err := r.usePrepared(prepared, dataDir); done || err != nil {
			return err
		}
	}
	for _, dir := range []string{staging, prepared} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("clearing %s: %w", dir, err)
		}
	}
	if err := os.Mkdir(staging, 0o700); err != nil {
		return fmt.Errorf("creating %s: %w", staging, err)
	}
	file := filepath.Join(staging, "snapshot.db")
	if there, err := r.read(ctx, file); err != nil {
		return err
	} else if !there {
		fmt.Fprintf(r.Log, "%s has nothing of shard %s, which begins empty\n", r.URL, r.Shard)
		return os.RemoveAll(staging)
	}
	restored := filepath.Join(staging, "data")
	if err := r.restore(file, restored, settings.Self, cfg); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("removing the downloaded snapshot: %w", err)
	}
	if r.Prepare {
		return r.keep(staging, prepared)
	}
	return r.publish(restored, dataDir, staging)
}

// bump is what is added to the snapshot's revision.
func (r Restore) bump() (uint64, error) {
	if r.RevisionBump != 0 || r.Secret == "" || !backups.WithSecret(r.URL) {
		return cmp.Or(r.RevisionBump, revisionBump), nil
	}
	parts, err := backups.ReadParts(r.Secret)
	return cmp.Or(parts[r.Shard].RevisionBump, revisionBump), err
}

// mark says what prepared data is of.
func (r Restore) mark() string { return fmt.Sprintf("%s\n%s\n%d\n", r.URL, r.Shard, r.RevisionBump) }

// keep has restored data wait for a run with Replace. The folder appears when all is in it.
func (r Restore) keep(staging, prepared string) error {
	if err := os.WriteFile(filepath.Join(staging, forName), []byte(r.mark()), 0o600); err != nil {
		return fmt.Errorf("noting what was prepared: %w", err)
	}
	if err := os.Rename(staging, prepared); err != nil {
		return fmt.Errorf("keeping the restored data: %w", err)
	}
	fmt.Fprintf(r.Log, "restored the snapshot to %s, beside the data of before\n", prepared)
	return nil
}

// usePrepared exchanges the data for what a run with Prepare has left. done is false when there is nothing, or of something else.
func (r Restore) usePrepared(prepared, dataDir string) (done bool, _ error) {
	mark, err := os.ReadFile(filepath.Join(prepared, forName))
	if err != nil || string(mark) != r.mark() {
		return false, nil //nolint:nilerr // because without a mark it is not finished, and is made anew
	}
	restored := filepath.Join(prepared, "data")
	if _, err := os.Stat(restored); errors.Is(err, os.ErrNotExist) {
		restored = "" // a run that was killed has moved it
	}
	return true, r.publish(restored, dataDir, prepared)
}

// read writes the snapshot into a file. There is none when the backup has nothing of the shard.
func (r Restore) read(ctx context.Context, file string) (there bool, _ error) {
	if r.Fetch == nil || !backups.WithSecret(r.URL) {
		if r.Shard != "" {
			return false, nil // the URL is that of one snapshot, the main etcd's
		}
		return true, r.download(ctx, file)
	}
	if err := r.Fetch(ctx, r.URL, r.Shard, file); err != nil {
		return false, fmt.Errorf("reading %s: %w", r.URL, err)
	}
	if _, err := os.Stat(file); r.Shard != "" && errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	fmt.Fprintf(r.Log, "read %s\n", r.URL)
	return true, nil
}

func (r Restore) restore(file, out string, self etcdinit.Peer, cfg etcdinit.Config) error {
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, OutputDataDir: out, Name: self.Name, PeerURLs: []string{self.URL},
		InitialCluster: cfg.InitialCluster(), InitialClusterToken: cfg.Token(),
		RevisionBump: r.RevisionBump, MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("restoring the snapshot: %w", err)
	}
	return nil
}

// While the folder beforeName is there the data of before is in it, whole, and the exchange has not ended: discard relies on that. So it appears by a rename and goes by
// one, into the folder of what is deleted.

// publish moves the restored directory to its place, which may be an empty folder, or one with data that is replaced; no name: it is there.
func (r Restore) publish(restored, dataDir, staging string) error {
	before := filepath.Join(filepath.Dir(dataDir), beforeName)
	if restored == "" {
		return r.clear(dataDir, staging, before)
	}
	if !r.Replace {
		if err := os.Remove(dataDir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the empty %s: %w", dataDir, err)
		}
	} else if err := moveAside(dataDir, staging, before); err != nil {
		return err
	}
	if err := os.Rename(restored, dataDir); err != nil {
		err = fmt.Errorf("moving the restored data to %s: %w", dataDir, err)
		if back := os.Rename(before, dataDir); r.Replace && back != nil && !errors.Is(back, os.ErrNotExist) {
			err = errors.Join(err, back)
		}
		return err
	}
	return r.clear(dataDir, staging, before)
}

func (r Restore) clear(dataDir, staging, before string) error {
	if err := drop(before, staging); err != nil {
		return err
	}
	if err := os.RemoveAll(staging); err != nil {
		return fmt.Errorf("clearing %s: %w", staging, err)
	}
	fmt.Fprintf(r.Log, "restored the snapshot to %s\n", dataDir)
	return nil
}

// moveAside moves data that is replaced, where there is any. A run that was killed may have done so.
func moveAside(dataDir, staging, before string) error {
	if _, err := os.Stat(dataDir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := drop(before, staging); err != nil {
		return err
	}
	if err := os.Rename(dataDir, before); err != nil {
		return fmt.Errorf("moving the data of before to %s: %w", before, err)
	}
	return nil
}

// drop deletes the data of before, which nobody goes back to any more.
func drop(before, staging string) error {
	dropped := filepath.Join(staging, beforeName)
	if err := os.RemoveAll(dropped); err != nil { // of a run that was killed
		return fmt.Errorf("clearing %s: %w", dropped, err)
	}
	if err := os.Rename(before, dropped); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("clearing %s: %w", before, err)
	}
	if err := os.RemoveAll(dropped); err != nil {
		return fmt.Errorf("clearing %s: %w", dropped, err)
	}
	return nil
}

// discard gives a restore up.
func (r Restore) discard(dataDir string) error {
	dir := filepath.Dir(dataDir)
	before := filepath.Join(dir, beforeName)
	if _, err := os.Stat(before); err == nil {
		if err := os.RemoveAll(dataDir); err != nil {
			return fmt.Errorf("clearing %s: %w", dataDir, err)
		}
		if err := os.Rename(before, dataDir); err != nil {
			return fmt.Errorf("moving the data of before to %s: %w", dataDir, err)
		}
	}
	for _, name := range []string{stagingName, preparedName} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("clearing %s: %w", filepath.Join(dir, name), err)
		}
	}
	fmt.Fprintf(r.Log, "%s is as it was before the restore\n", dataDir)
	return nil
}

// download stores the snapshot in a file. Errors name the URL without its query.
func (r Restore) download(ctx context.Context, path string) error {
	source, err := url.Parse(r.URL)
	if err != nil || (source.Scheme != "https" && source.Scheme != "http") || source.Host == "" {
		return errors.New("parsing the snapshot's URL: it must be an http or https URL")
	}
	shown := source.Scheme + "://" + source.Host + source.Path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return fmt.Errorf("downloading %s: the URL is malformed", shown)
	}
	resp, err := r.HTTP.Do(req)
	if err != nil {
		var asURL *url.Error
		if errors.As(err, &asURL) {
			err = asURL.Err // the outer error has the query
		}
		return fmt.Errorf("downloading %s: %w", shown, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("downloading %s: the server answers %s", shown, resp.Status)
	}
	if resp.ContentLength > r.MaxBytes {
		return fmt.Errorf("downloading %s: %d bytes are more than the %d bytes allowed", shown, resp.ContentLength, r.MaxBytes)
	}
	if err := store(resp.Body, path, r.MaxBytes, r.SHA256); err != nil {
		return fmt.Errorf("downloading %s: %w", shown, err)
	}
	fmt.Fprintf(r.Log, "downloaded %s\n", shown)
	return nil
}

func store(body io.Reader, path string, limit int64, wantSHA string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, 64)
	n, err := io.ReadFull(body, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("reading: %w", err)
	}
	head = head[:n]
	if bytes.HasPrefix(bytes.TrimSpace(head), []byte("<")) {
		return errors.New("the server sent a document, not a snapshot (an object store's error message looks like that: check the URL and whether its signature has expired)")
	}
	sum := sha256.New()
	written, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(io.MultiReader(bytes.NewReader(head), body), limit+1))
	if err != nil {
		return err
	}
	if written > limit {
		return fmt.Errorf("more than the %d bytes allowed", limit)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); wantSHA != "" && !strings.EqualFold(got, wantSHA) {
		return fmt.Errorf("its SHA-256 is %s, not %s", got, wantSHA)
	}
	return f.Sync()
}

// Command is `control-plane-operator etcd-restore`, which `hcp-sidecar etcd-init restore` starts. fetch reads what a plain download can't.
func Command(fetch Fetch) *cobra.Command {
	r := Restore{Fetch: fetch, Secret: backups.Mount, HTTP: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: headerTimeout, TLSHandshakeTimeout: headerTimeout,
	}}}
	timeout := time.Hour
	cmd := &cobra.Command{
		Use:   "etcd-restore",
		Short: "Fill the data directory from a snapshot; does nothing when there is data, unless it is to be replaced",
		Example: `  RESTORE_URL_ETCD=https://bucket.example.com/demo.db?signature=... \
    control-plane-operator etcd-restore --name=$POD_NAME --config-template=/etc/etcd/config/etcd.yaml`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.URL == "" {
				r.URL = os.Getenv("RESTORE_URL_ETCD")
			}
			if r.URL == "" {
				return errors.New("no snapshot: set the environment variable RESTORE_URL_ETCD or --snapshot-url")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			r.Log = cmd.OutOrStdout()
			return r.Run(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.URL, "snapshot-url", "", "URL of the snapshot; default: $RESTORE_URL_ETCD, which hides a signature from process lists")
	f.StringVar(&r.Shard, "shard", "", "shard of etcd that is restored, which begins empty when the backup has nothing of it; empty: the main etcd")
	f.StringVar(&r.SHA256, "snapshot-sha256", "", "SHA-256 of the snapshot file in hex, verified when given")
	f.StringVar(&r.Template, "config-template", "/etc/etcd/config/etcd.yaml", "etcd's configuration file, with $(VAR) for variables of the environment")
	f.StringVar(&r.Name, "name", os.Getenv("POD_NAME"), "name of the member; default: $POD_NAME, else the template's")
	f.StringVar(&r.DataDir, "data-dir", "", "etcd's data directory; default: the template's")
	f.BoolVar(&r.Replace, "replace", false, "replace data that is there, once the snapshot has been restored beside it")
	f.BoolVar(&r.Prepare, "prepare", false, "restore beside data that is there, for a later run with --replace, which needs no storage any more")
	f.BoolVar(&r.Discard, "discard", false, "give a restore up: delete what --prepare and --replace have left, and put the data of before where it was")
	f.Uint64Var(&r.RevisionBump, "revision-bump", 0, fmt.Sprintf("what is added to the snapshot's revision; the same for all members; 0: what Secret %s tells, else %d", backups.Secret, revisionBump))
	f.Int64Var(&r.MaxBytes, "max-bytes", maxSnapshot, "largest snapshot accepted")
	f.DurationVar(&timeout, "timeout", timeout, "give up after this long")
	return cmd
}
