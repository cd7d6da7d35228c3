package oadp

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/platform/internal/cli/connect"
)

// Commands are the subcommands of `hypershift create`.
func Commands() []*cobra.Command {
	return []*cobra.Command{backupCommand(), restoreCommand(), scheduleCommand()}
}

const about = "OADP must be installed on the management cluster. The object is created in its namespace, and Velero carries it out.\n" +
	"With --render it is printed; nothing is written, and what would stand in the way is a warning."

func (o *Common) addFlags(cmd *cobra.Command) {
	o.Namespace = "openshift-adp"
	f := cmd.Flags()
	f.StringVar(&o.ClusterName, "hc-name", "", "Name of the HostedCluster (required)")
	f.StringVar(&o.ClusterNamespace, "hc-namespace", "", "Namespace of the HostedCluster (required)")
	f.StringVar(&o.Name, "name", "", "Name of the object, at most 63 characters (default: generated from the names of the HostedCluster)")
	f.StringVar(&o.Namespace, "oadp-namespace", o.Namespace, "Namespace that OADP runs in")
	f.StringSliceVar(&o.Additional, "include-additional-namespaces", nil, "Namespaces in addition to those of the HostedCluster and its control plane")
	f.BoolVar(&o.EtcdSnapshot, "use-etcd-snapshot", false, "Save the data with a snapshot of etcd (HCPEtcdBackup), not with volumes")
	f.BoolVar(&o.Render, "render", false, "Print the object instead of creating it")
	o.Connect.AddFlags(f)
	o.Connect.DryRun.AddFlag(cmd)
	// Only fail for flags that aren't there.
	_ = cmd.MarkFlagRequired("hc-name")
	_ = cmd.MarkFlagRequired("hc-namespace")
	connect.CompleteHostedClusters(cmd, &o.Connect, "hc-name", &o.ClusterNamespace)
	connect.CompleteNamespaces(cmd, &o.Connect, "hc-namespace")
	connect.CompleteNamespaces(cmd, &o.Connect, "oadp-namespace")
	connect.CompleteNamespaces(cmd, &o.Connect, "include-additional-namespaces")
}

func (o *Saving) addFlags(cmd *cobra.Command, moveData bool) {
	o.Common.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Location, "storage-location", "default", "BackupStorageLocation to save in")
	f.DurationVar(&o.TTL, "ttl", 2*time.Hour, "How long a backup is kept")
	f.BoolVar(&o.MoveData, "snapshot-move-data", moveData, "Copy snapshots of volumes into the storage")
	f.BoolVar(&o.FilesOfVolumes, "default-volumes-to-fs-backup", false, "Copy volumes file by file")
	f.StringSliceVar(&o.Resources, "included-resources", nil, "Resources to save (default: those that the platform needs)")
}

// saving checks what backups and schedules have in common.
func (o *Saving) check(cmd *cobra.Command, kind string) error {
	if o.EtcdSnapshot {
		if err := refuseTyped(cmd.Flags().Changed, "snapshot-move-data", "default-volumes-to-fs-backup"); err != nil {
			return err
		}
	}
	if o.TTL <= 0 {
		return fmt.Errorf("--ttl %s: give a time above zero, such as 72h", o.TTL)
	}
	return o.named(kind)
}

func backupCommand() *cobra.Command {
	o := &BackupOptions{}
	cmd := &cobra.Command{
		Use:   "oadp-backup",
		Short: "Create a backup of a hosted cluster with OADP",
		Long:  "Create a Backup of velero.io for a hosted cluster: its objects, those of its control plane, and its data.\n\n" + about,
		Example: `  hypershift create oadp-backup --hc-name demo --hc-namespace clusters
  hypershift create oadp-backup --hc-name demo --hc-namespace clusters --storage-location s3 --ttl 720h --render`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd, "backup"); err != nil {
				return err
			}
			if o.Render {
				fmt.Fprintln(cmd.ErrOrStderr())
			}
			return job{common: &o.Common, hosted: true, build: o.backup}.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd, true)
	return cmd
}

func scheduleCommand() *cobra.Command {
	o := &ScheduleOptions{}
	cmd := &cobra.Command{
		Use:   "oadp-schedule",
		Short: "Create a backup schedule for a hosted cluster with OADP",
		Long: "Create a Schedule of velero.io for a hosted cluster.\n\n--schedule takes five fields (minute, hour, day of month, month, day of week), or a word: hourly, daily, daily-1am, -2am, -3am,\n" +
			"-6am, -noon, weekly, weekly-sunday, -monday, -friday, -saturday, monthly, yearly; @hourly and the like.\n\n" + about,
		Example: `  hypershift create oadp-schedule --hc-name demo --hc-namespace clusters --schedule daily-2am --ttl 720h
  hypershift create oadp-schedule --hc-name demo --hc-namespace clusters --schedule "0 */6 * * *" --paused`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fields, err := cron(o.Schedule)
			if err != nil {
				return err
			}
			if err := o.check(cmd, "schedule"); err != nil {
				return err
			}
			build := func(of cluster) *unstructured.Unstructured { return o.schedule(of, fields) }
			return job{common: &o.Common, hosted: true, build: build}.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd, false)
	f := cmd.Flags()
	f.StringVar(&o.Schedule, "schedule", "", "When to make backups (required): five fields, or a word such as daily")
	f.BoolVar(&o.Paused, "paused", false, "Create the schedule paused")
	f.BoolVar(&o.OwnerReferences, "use-owner-references", false, "Delete its backups with the schedule")
	f.BoolVar(&o.SkipImmediately, "skip-immediately", false, "Make the first backup at the scheduled time, not at once")
	_ = cmd.MarkFlagRequired("schedule")
	return cmd
}

func restoreCommand() *cobra.Command {
	o := &RestoreOptions{}
	cmd := &cobra.Command{
		Use:   "oadp-restore",
		Short: "Restore a hosted cluster from a backup with OADP",
		Long:  "Create a Restore of velero.io for a hosted cluster, which need not be there.\n\n" + about,
		Example: `  hypershift create oadp-restore --hc-name demo --hc-namespace clusters --from-backup demo-clusters-x7k2p9
  hypershift create oadp-restore --hc-name demo --hc-namespace clusters --from-schedule demo-daily --existing-resource-policy none`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.EtcdSnapshot {
				if err := refuseTyped(cmd.Flags().Changed, "restore-pvs"); err != nil {
					return err
				}
			}
			if err := o.check(); err != nil {
				return err
			}
			build := func(cluster) *unstructured.Unstructured { return o.restore() }
			return job{common: &o.Common, source: o.source, build: build}.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.FromBackup, "from-backup", "", "Backup to restore")
	f.StringVar(&o.FromSchedule, "from-schedule", "", "Schedule whose newest backup to restore")
	f.StringVar(&o.Policy, "existing-resource-policy", "update", "What becomes of objects that are there: none (leave them) or update")
	f.BoolVar(&o.Volumes, "restore-pvs", true, "Restore volumes")
	f.BoolVar(&o.NodePorts, "preserve-node-ports", true, "Keep the node ports of Services")
	// Only fails for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc("existing-resource-policy", cobra.FixedCompletions([]string{"none", "update"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
