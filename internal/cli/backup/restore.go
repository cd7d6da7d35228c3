package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup/bundle"
)

// restoring is what restore and clone are told.
type restoring struct {
	connect         connect.Flags
	storage         storage
	from            string // URL, or name of an HCPEtcdBackup
	name, namespace string
	clone           bool
	dryRun, wait    bool
	noPools         bool
	// inPlace replaces the data of a cluster that is there; yes says that this is wanted.
	inPlace, yes bool
	timeout      time.Duration
}

func (r *restoring) addFlags(cmd *cobra.Command) {
	r.wait, r.timeout = true, 30*time.Minute
	f := cmd.Flags()
	f.StringVar(&r.from, "from", "", "Backup: its URL, s3://BUCKET/NAME or https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME (required)")
	f.StringVarP(&r.namespace, "namespace", "n", "", "Namespace of the HostedCluster (default: as in the backup)")
	f.BoolVar(&r.dryRun, "dry-run", false, "Read and check everything, print the report, and write nothing")
	f.BoolVar(&r.noPools, "without-node-pools", false, "Create no NodePools")
	f.BoolVar(&r.wait, "wait", r.wait, "Wait until the cluster is available, and clean up in it")
	f.DurationVar(&r.timeout, "timeout", r.timeout, "Stop waiting after this time; 0 means never")
	r.storage.addFlags(cmd)
	r.connect.AddFlags(f)
	connect.CompleteNamespaces(cmd, &r.connect, "namespace")
	_ = cmd.MarkFlagRequired("from") // only fails for a flag that isn't there
}

// RestoreCommand is `hypershift restore`.
func RestoreCommand() *cobra.Command {
	r := &restoring{}
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Restore a hosted cluster from a backup",
		Long: `Restore a hosted cluster from a backup, on this management cluster or another one.

The command first reads and checks everything: who made the backup, that it is complete, that this version can host its release, that there is room for it, and that nothing
conflicts with it. --dry-run stops there. Only then does it write: the objects that the HostedCluster references, its certificate authorities and service account signing key, the
HostedCluster, whose etcd starts from the snapshot, and the NodePools. It changes and deletes nothing that exists. If it is interrupted, run it again with the same flags: it goes on,
and cleans up at the end.

With --in-place, the HostedCluster exists, and the backup's content replaces all its data. Certificate authorities, addresses, machines and NodePools stay: workers keep running, and
reach their API server again after half a minute. The HostedCluster is paused, API servers and etcd are stopped, and the snapshot is restored on etcd's volume beside the previous
data. The previous data is deleted only when that has worked; otherwise, everything continues with it. You can interrupt the command and run it again: it continues where it
stopped, and replaces no data a second time, so that what was written since stays. Don't end the pause yourself. To restore a backup once more, let the command end first.

Certificate authorities and addresses stay the same, so that kubeconfigs, tokens and your own workers (platform None) keep working. Workers of other platforms are created anew. The
original cluster must be gone, or off for good: two clusters with the same identity would conflict.`,
		Example: `  hypershift restore --from s3://backups/clusters/demo/1764000000.db.enc --credentials backup-bucket --dry-run
  hypershift restore --from s3://backups/clusters/demo/1764000000.db.enc --credentials-file keys --encryption-key-file key --region eu-west-1
  hypershift restore --from https://mybackups.blob.core.windows.net/clusters/clusters/demo/1764000000.db.enc --credentials backup-container
  hypershift restore --from s3://backups/clusters/demo/1764000000.db.enc --credentials backup-bucket --in-place --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	r.addFlags(cmd)
	cmd.Flags().StringVar(&r.name, "name", "", "Name of the HostedCluster (default: as in the backup)")
	cmd.Flags().BoolVar(&r.inPlace, "in-place", false, "Replace the data of an existing HostedCluster; its workers keep running")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "With --in-place: replace the data")
	cmd.MarkFlagsMutuallyExclusive("in-place", "without-node-pools")
	return cmd
}

// CloneCommand is `hypershift clone`.
func CloneCommand() *cobra.Command {
	r := &restoring{clone: true}
	cmd := &cobra.Command{
		Use:   "clone",
		Short: "Create another hosted cluster with the data of a backup",
		Long: `Create another hosted cluster with the data of a backup, beside the original.

It has its own name, identifiers, certificate authorities and service account signing key: it doesn't accept credentials of the original. If the original's key is yours
(spec.serviceAccountSigningKey), that field and spec.issuerURL are left out. Objects that the original references are copied under names of their own. Data that belongs to the original is deleted once the clone is available: Nodes and their leases, certificate requests, volume attachments, and
Secrets with service account tokens. Platforms whose controllers would take the original's disks and load balancers for their own, that is all except None and Local, are refused.`,
		Example: `  hypershift clone --from s3://backups/clusters/demo/1764000000.db.enc --credentials backup-bucket --name demo-copy`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	r.addFlags(cmd)
	cmd.Flags().StringVar(&r.name, "name", "", "Name of the new HostedCluster (required)")
	return cmd
}

func (r *restoring) run(ctx context.Context, out io.Writer) error {
	if r.clone && r.name == "" {
		return errors.New("give the clone a name by --name")
	}
	if !backups.WithSecret(r.from) {
		return fmt.Errorf("--from: %q is no URL of a sealed backup: want %sBUCKET/NAME%s, or https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME%s", r.from, backups.Scheme, backups.SealedEnd, backups.SealedEnd)
	}
	c, err := r.connect.Client()
	if err != nil {
		return err
	}
	s, done, err := r.storage.open(ctx, c, r.from)
	if err != nil {
		return err
	}
	defer done()
	p := progress.New(out, nil)
	read, err := readBackup(ctx, s, s.file)
	if err != nil {
		return fmt.Errorf("the backup is refused: %w", err)
	}
	if shards := read.manifest.ShardNames(); len(shards) > 0 {
		s.data[backups.ShardsKey] = []byte(strings.Join(shards, ","))
	}
	t := target{namespace: cmp.Or(r.namespace, read.manifest.Cluster.Namespace), name: cmp.Or(r.name, read.manifest.Cluster.Name), url: s.checked(r.from, read.manifest), access: s.data, clone: r.clone, pools: !r.noPools}
	if r.inPlace {
		return r.runInPlace(ctx, out, c, s, read, t)
	}
	m, err := build(read.objects, t)
	if err != nil {
		return err
	}
	w, err := look(ctx, c, r.storage.operator, m)
	if err != nil {
		return err
	}
	report := judge(read, w, m, t)
	for _, line := range report.lines {
		fmt.Fprintln(out, line)
	}
	if len(report.refusals) > 0 {
		return fmt.Errorf("nothing was written:\n  %s", strings.Join(report.refusals, "\n  "))
	}
	if r.dryRun {
		_, err := fmt.Fprintln(out, "Nothing was written: this was a dry run.")
		return err
	}
	if report.again {
		err = writePools(ctx, c, m, p)
	} else if _, err = tell(ctx, c, &corev1.Namespace{}, read.manifest, m.secrets[0].Data); err == nil {
		err = write(ctx, c, m, p)
	}
	if err != nil {
		return err
	}
	if !r.wait {
		_, err := fmt.Fprintf(out, "When the cluster is available, run the command again without --wait=false: %s\n", m.left(t))
		return err
	}
	if err := r.await(ctx, c, m, t, p); err != nil {
		return fmt.Errorf("%w\nThe HostedCluster has been created. Run the command again, with the same flags, to go on: %s", err, m.left(t))
	}
	return nil
}

// await waits until the cluster is available, and clears up.
func (r *restoring) await(ctx context.Context, c client.Client, m made, t target, p *progress.Printer) error {
	o := create.NewOptions(m.cluster.Spec.Platform.Type)
	o.Namespace, o.Name, o.Timeout = t.namespace, t.name, r.timeout
	if err := create.Wait(ctx, o, c, p); err != nil {
		return err
	}
	return finish(ctx, c, r.connect, m, t, p)
}

// left is what stays of a restore until its command has ended.
func (m made) left(t target) string {
	what := "what belongs to machines that are gone"
	if t.clone {
		what += ", and token Secrets of the original cluster"
	}
	return fmt.Sprintf("it waits, and then deletes Secret %s in namespace %s, which holds the key of the backups and the credentials of the storage, its NetworkPolicy, and, in the hosted cluster, %s",
		m.secrets[0].Name, m.namespace.Name, what)
}

// checked is the URL of the snapshot that was checked. A URL that ends with .db may have led to it as well, and would later lead etcd to an unsealed one if somebody put it there.
func (o opened) checked(from string, m bundle.Manifest) string {
	if path.Base(o.file) == m.Snapshot.Name {
		return from
	}
	return o.URL(bundle.Beside(o.file, m.Snapshot.Name))
}

// saved is what was read of a backup.
type saved struct {
	manifest bundle.Manifest
	objects  bundle.Objects
}

// readBackup reads and checks all of a backup.
func readBackup(ctx context.Context, s opened, file string) (saved, error) {
	m, packed, err := bundle.Verify(ctx, s, file, s.key)
	if err != nil {
		return saved{}, err
	}
	if m.Key == "" || m.Objects == nil {
		return saved{}, errors.New("it is a snapshot of etcd alone, that was not sealed: anybody may have put it there, and there are no objects to make a cluster of. Give its URL to " +
			"spec.etcd.managed.storage.restoreSnapshotURL of a HostedCluster of your own if you trust it")
	}
	o, err := bundle.DecodeObjects(packed)
	if err != nil {
		return saved{}, err
	}
	if o.HostedCluster.Name != m.Cluster.Name || o.HostedCluster.Namespace != m.Cluster.Namespace {
		return saved{}, fmt.Errorf("the manifest is of HostedCluster %s/%s, and the objects are of %s/%s: they are not of one backup",
			m.Cluster.Namespace, m.Cluster.Name, o.HostedCluster.Namespace, o.HostedCluster.Name)
	}
	if err := ofOneBackup(m, o.HostedCluster); err != nil {
		return saved{}, err
	}
	return saved{m, o}, nil
}

// ofOneBackup: a backup without one of the cluster's etcds is none, and one of etcds that the cluster doesn't have is of another.
func ofOneBackup(m bundle.Manifest, hc *hyperv1.HostedCluster) error {
	persistent, volatile := backups.ShardsOf(hc.Spec.Etcd)
	for _, name := range persistent {
		if _, there := m.Part(name); !there && !slices.Contains(m.Etcd.Shards, name) {
			return fmt.Errorf("it has nothing of shard %s of etcd, which the cluster has: it isn't whole", name)
		}
	}
	for _, name := range m.ShardNames() {
		if !slices.Contains(persistent, name) {
			return fmt.Errorf("it has a shard %s of etcd, which the cluster doesn't have, or has in its pods alone (%s)", name, strings.Join(volatile, ", "))
		}
	}
	return nil
}

// controlPlane is the namespace of the new cluster's control plane.
func (m made) controlPlane() string { return names.NamespaceOf(m.cluster) }

func (m made) key() client.ObjectKey { return client.ObjectKeyFromObject(m.cluster) }
