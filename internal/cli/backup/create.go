package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup/schedule"
	"hcp.internal/platform/internal/kube/conditions"
)

// making is what create backup and create schedule have in common.
type making struct {
	connect         connect.Flags
	name, namespace string
	object          string // name of the HCPEtcdBackup
	prefix, secret  string
	s3              hyperv1.HCPEtcdBackupS3
	azure           hyperv1.HCPEtcdBackupAzureBlob
	annotations     map[string]string
}

func (m *making) addFlags(cmd *cobra.Command) {
	m.namespace = connect.DefaultNamespace
	m.annotations = map[string]string{}
	f := cmd.Flags()
	f.StringVar(&m.name, "name", "", "Name of the HostedCluster (required)")
	f.StringVarP(&m.namespace, "namespace", "n", m.namespace, "Namespace of the HostedCluster")
	f.StringVar(&m.s3.Bucket, "bucket", "", "Bucket of S3 to save in, or folder of the volume")
	f.StringVar(&m.s3.Region, "region", "us-east-1", "Region of the bucket")
	f.StringVar((*string)(&m.s3.KMSKeyARN), "kms-key-arn", "", "Key of AWS KMS that S3 encrypts the files with, beside your own (default: that of spec.etcd.managed.backup)")
	f.StringVar(&m.azure.StorageAccount, "storage-account", "", "Storage account of Azure to save in, instead of S3")
	f.StringVar(&m.azure.Container, "container", "", "Container of the storage account")
	f.StringVar((*string)(&m.azure.EncryptionKeyURL), "encryption-key-url", "", "Key of an Azure key vault that the account's encryption scope has, which encrypts the files beside your own (default: that of spec.etcd.managed.backup)")
	f.StringVar(&m.prefix, "key-prefix", "", "What the names of the files begin with (default: NAMESPACE/NAME of the HostedCluster)")
	f.StringVar(&m.secret, "credentials", "", "Secret of the operator's namespace that says how the storage is reached and what the backup is sealed with (required)")
	m.connect.AddFlags(f)
	m.connect.DryRun.AddFlag(cmd)
	cmd.MarkFlagsOneRequired("bucket", "container")
	cmd.MarkFlagsMutuallyExclusive("bucket", "container")
	cmd.MarkFlagsRequiredTogether("container", "storage-account")
	for _, name := range []string{"region", "kms-key-arn"} {
		cmd.MarkFlagsMutuallyExclusive("container", name)
	}
	cmd.MarkFlagsMutuallyExclusive("bucket", "encryption-key-url")
	_ = cmd.MarkFlagRequired("credentials") // only fails for a flag that isn't there
	connect.CompleteHostedClusters(cmd, &m.connect, "name", &m.namespace)
	connect.CompleteNamespaces(cmd, &m.connect, "namespace")
}

// aboutStorage is in the help of both.
const aboutStorage = `The Secret is in the operator's namespace (hypershift). Its keys:

  credentials       S3: a credentials file of AWS, which may name an endpoint_url, or the ARN of a role
                    Azure: JSON with tenantId, clientId and clientSecret, or with accountKey
  cloud             Azure: AZURE_TENANT_ID=… and AZURE_CLIENT_ID=… of a workload identity, instead
  encryption-key    32 bytes, or those in base64 (openssl rand -base64 32): everything is sealed with it
  encryption-scope  Azure: name of the encryption scope that has the key of --encryption-key-url
  ca-bundle.crt     certificates that the endpoint is trusted by
  volume-claim      a PersistentVolumeClaim of that namespace, to save there and not in S3

Without encryption-key the snapshot of etcd is saved alone, as it is. With it, HostedCluster, NodePools, what they name, and the certificate authorities are saved beside it, so that
hypershift restore needs nothing else. Keep the key somewhere else, too: without it the backup can't be read.`

// CreateCommands are the subcommands of `hypershift create`.
func CreateCommands() []*cobra.Command { return []*cobra.Command{createBackup(), createSchedule()} }

func createBackup() *cobra.Command {
	m := &making{}
	wait, timeout := true, 20*time.Minute
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Save a hosted cluster in S3, in Azure Blob Storage or on a volume",
		Long:  "Save a hosted cluster: create an HCPEtcdBackup, which the operator carries out, and wait for its end.\n\n" + aboutStorage,
		Example: `  hypershift create backup demo --bucket backups --credentials backup-bucket
  hypershift create backup demo --bucket backups --region eu-west-1 --credentials backup-bucket --backup-name before-the-upgrade
  hypershift create backup demo --storage-account mybackups --container clusters --credentials backup-container`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.run(cmd.Context(), cmd.OutOrStdout(), wait, timeout)
		},
	}
	m.addFlags(cmd)
	cmd.Flags().StringVar(&m.object, "backup-name", "", "Name of the HCPEtcdBackup (default: backup-DATE-TIME)")
	cmd.Flags().BoolVar(&wait, "wait", wait, "Wait until the backup has ended")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "Stop waiting after this time; 0 means never")
	return cmd
}

func createSchedule() *cobra.Command {
	m := &making{}
	var when, verify string
	keep := 0
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Save a hosted cluster on a schedule",
		Long: "Save a hosted cluster again and again: create an HCPEtcdBackup with annotation " + backups.ScheduleAnnotation + ", of which the operator makes one at each time.\n\n" +
			"--schedule takes five fields in UTC (minute, hour, day of month, month, day of week), or @hourly, @daily, @weekly, @monthly. With --keep each backup deletes the oldest ones from\nthe storage. " +
			"With --verify the newest one is read back at these times and restored for a trial.\n\n" + aboutStorage,
		Example: `  hypershift create schedule demo --schedule "0 */6 * * *" --keep 28 --verify @weekly --bucket backups --credentials backup-bucket
  kubectl delete hcpetcdbackup -n clusters-demo scheduled`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m.annotations[backups.ScheduleAnnotation] = when
			if verify != "" {
				m.annotations[backups.VerifyScheduleAnnotation] = verify
			}
			if keep != 0 {
				m.annotations[backups.KeepAnnotation] = strconv.Itoa(keep)
			}
			if _, err := schedule.Parse(m.annotations); err != nil {
				return err
			}
			return m.run(cmd.Context(), cmd.OutOrStdout(), false, 0)
		},
	}
	m.addFlags(cmd)
	cmd.Flags().StringVar(&m.object, "schedule-name", "scheduled", "Name of the HCPEtcdBackup, with which those of its backups begin")
	cmd.Flags().StringVar(&when, "schedule", "", "When to save (required)")
	cmd.Flags().StringVar(&verify, "verify", "", "When to read back the newest one (default: never)")
	cmd.Flags().IntVar(&keep, "keep", 0, "How many backups stay in the storage; 0 means all")
	_ = cmd.MarkFlagRequired("schedule") // only fails for a flag that isn't there
	return cmd
}

// storage is what the flags say.
func (m *making) storage() hyperv1.HCPEtcdBackupStorage {
	credentials := hyperv1.EncryptionSecretReference{Name: m.secret}
	if m.azure.Container != "" {
		m.azure.KeyPrefix, m.azure.Credentials = m.prefix, credentials
		return hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.AzureBlobBackupStorage, AzureBlob: &m.azure}
	}
	m.s3.KeyPrefix, m.s3.Credentials = m.prefix, credentials
	return hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.S3BackupStorage, S3: &m.s3}
}

// run creates the object, and waits for its end when that is wanted.
func (m *making) run(ctx context.Context, out io.Writer, wait bool, timeout time.Duration) error {
	if m.name == "" {
		return errors.New("give the name of the HostedCluster")
	}
	if m.prefix == "" {
		m.prefix = m.namespace + "/" + m.name
	}
	if m.object == "" {
		m.object = "backup-" + time.Now().UTC().Format("20060102-150405")
	}
	if problem := backups.NameProblem(m.object); problem != "" {
		return fmt.Errorf("HCPEtcdBackup %q: %s", m.object, problem)
	}
	c, err := m.connect.Client()
	if err != nil {
		return err
	}
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: m.name}, hc); err != nil {
		return fmt.Errorf("reading HostedCluster %s/%s: %w", m.namespace, m.name, err)
	}
	b := &hyperv1.HCPEtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: m.object, Annotations: m.annotations},
		Spec:       hyperv1.HCPEtcdBackupSpec{Storage: m.storage()},
	}
	switch err := c.Create(ctx, b); {
	case meta.IsNoMatchError(err):
		return errNoKind
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("HCPEtcdBackup %s/%s is there already: give another name, or delete it", b.Namespace, b.Name)
	case err != nil:
		return fmt.Errorf("creating HCPEtcdBackup %s/%s: %w", b.Namespace, b.Name, err)
	}
	if dry := m.connect.DryRun; dry != connect.NoDryRun {
		_, err := fmt.Fprintf(out, "HCPEtcdBackup %s/%s created%s\n", b.Namespace, b.Name, dry.Suffix())
		return err
	}
	if !wait {
		_, err := fmt.Fprintf(out, "HCPEtcdBackup %s/%s created. See its backups:\n  hypershift get backups %s --namespace %s\n", b.Namespace, b.Name, m.name, m.namespace)
		return err
	}
	return waitFor(ctx, c, b, progress.New(out, nil), timeout)
}

var errNoKind = errors.New("the management cluster has no HCPEtcdBackups, which are a technology preview: install with --tech-preview-no-upgrade")

// waitFor waits until a backup has ended.
func waitFor(ctx context.Context, c client.Client, b *hyperv1.HCPEtcdBackup, p *progress.Printer, timeout time.Duration) error {
	ctx, cancel := connect.WithTimeout(ctx, timeout)
	defer cancel()
	p.Printf("HCPEtcdBackup %s/%s created", b.Namespace, b.Name)
	err := p.Until(ctx, fmt.Sprintf("HCPEtcdBackup %s/%s", b.Namespace, b.Name), func(ctx context.Context) (progress.State, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			if apierrors.IsNotFound(err) {
				err = progress.Terminal(err)
			}
			return progress.State{}, err
		}
		done := conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupCompleted)
		switch {
		case done == nil:
			return progress.Waiting("the operator has not looked at it yet"), nil
		case done.Status == metav1.ConditionTrue:
			return progress.Done(), nil
		case done.Reason == hyperv1.BackupFailedReason || done.Reason == hyperv1.BackupRejectedReason:
			return progress.State{}, progress.Terminal(fmt.Errorf("%s: %s", done.Reason, done.Message))
		}
		return progress.Waiting("%s: %s", done.Reason, done.Message), nil
	})
	if err != nil {
		return err
	}
	p.Printf("saved at %s", b.Status.SnapshotURL)
	if v := conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupVerified); v != nil {
		p.Printf("%s", v.Message)
	}
	return nil
}
