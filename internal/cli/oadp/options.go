package oadp

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hcp.internal/platform/internal/cli/connect"
)

// Common is what all three commands are told.
type Common struct {
	Connect connect.Flags
	// ClusterName and ClusterNamespace are the HostedCluster.
	ClusterName, ClusterNamespace string
	// Namespace is where OADP runs and where its objects are; Name is the object's; empty: one is generated.
	Namespace, Name string
	// Additional are namespaces beside those of the hosted cluster and its control plane.
	Additional []string
	// EtcdSnapshot has etcd write the snapshot (HCPEtcdBackup), and no volume is copied.
	EtcdSnapshot bool
	// Render prints the object instead of creating it.
	Render bool
}

// Saving is what backups and schedules have in common.
type Saving struct {
	Common
	// Location is the BackupStorageLocation.
	Location string
	// TTL is how long a backup is kept.
	TTL time.Duration
	// MoveData copies snapshots of volumes into the storage; FilesOfVolumes copies volumes file by file instead.
	MoveData, FilesOfVolumes bool
	// Resources replaces what is saved; empty: what the platform needs.
	Resources []string
}

// BackupOptions are those of oadp-backup.
type BackupOptions struct{ Saving }

// ScheduleOptions are those of oadp-schedule.
type ScheduleOptions struct {
	Saving
	// Schedule is five fields or a word.
	Schedule                                 string
	Paused, OwnerReferences, SkipImmediately bool
}

// RestoreOptions are those of oadp-restore.
type RestoreOptions struct {
	Common
	// FromBackup or FromSchedule, never both: a Backup, or the newest of a Schedule.
	FromBackup, FromSchedule string
	// Policy is what happens to objects that are there: none or update.
	Policy             string
	Volumes, NodePorts bool
}

// policies are what --existing-resource-policy takes.
var policies = []string{"none", "update"}

// check says what is wrong with the options alone.
func (o *RestoreOptions) check() error {
	switch {
	case o.FromBackup == "" && o.FromSchedule == "":
		return errors.New("either --from-backup or --from-schedule must be specified")
	case o.FromBackup != "" && o.FromSchedule != "":
		return errors.New("--from-backup and --from-schedule are mutually exclusive, specify only one")
	}
	if err := o.named("restore"); err != nil {
		return err
	}
	if !slices.Contains(policies, o.Policy) {
		return fmt.Errorf("invalid existing-resource-policy '%s'. Valid values are: none, update", o.Policy)
	}
	return nil
}

// named gives the object a name, or checks the one that it was given.
func (o *Common) named(kind string) error {
	if o.Name == "" {
		o.Name = generated(o.ClusterName, o.ClusterNamespace)
		return nil
	}
	return checkName(kind, o.Name)
}
