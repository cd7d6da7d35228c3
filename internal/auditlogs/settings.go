package auditlogs

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/kube/conditions"
)

// What counts where the configuration says nothing.
const (
	defaultSize             = "5Gi"
	defaultMaxSize          = 200
	defaultMaxBackup        = 10
	defaultInterval         = time.Hour
	defaultPodRetention     = 10
	defaultClusterRetention = 50
)

// Snapshots says when snapshots are taken, and how many are kept.
type Snapshots struct {
	// Interval is the least time between two of one Pod.
	Interval time.Duration
	// PerPod and PerControlPlane are how many are kept.
	PerPod, PerControlPlane int
	// Class is the VolumeSnapshotClass; empty: the default.
	Class string
}

// SettingsOf reads a configuration. An error names each wrong field, and the remedy.
func SettingsOf(spec *auditlogv1alpha1.AuditLogPersistenceConfigSpec) (auditlogs.Settings, *Snapshots, error) {
	s := auditlogs.Settings{
		Size: defaultSize, StorageClass: spec.Storage.StorageClassName,
		MaxSize: ptr.Deref(spec.AuditLog.MaxSize, defaultMaxSize), MaxBackup: ptr.Deref(spec.AuditLog.MaxBackup, defaultMaxBackup),
	}
	var errs []error
	size := resource.MustParse(defaultSize)
	if spec.Storage.Size != nil {
		size = *spec.Storage.Size
		s.Size = size.String()
	}
	if size.Sign() <= 0 {
		errs = append(errs, fmt.Errorf("spec.storage.size is %s: it must be more than 0", size.String()))
	} else if need := int64(s.MaxSize) * (int64(s.MaxBackup) + 1) << 20; size.Value() < need {
		errs = append(errs, fmt.Errorf("spec.storage.size is %s, and %d files of spec.auditLog.maxSize %d MB need %s: make volumes larger, or keep fewer or smaller files",
			size.String(), s.MaxBackup+1, s.MaxSize, resource.NewQuantity(need, resource.BinarySI)))
	}
	if !spec.Snapshots.Enabled {
		return s, nil, errors.Join(errs...)
	}
	snapshots := &Snapshots{
		Interval: defaultInterval, Class: spec.Snapshots.VolumeSnapshotClassName,
		PerPod:          int(ptr.Deref(spec.Snapshots.PerPodRetentionCount, defaultPodRetention)),
		PerControlPlane: int(ptr.Deref(spec.Snapshots.NamespaceRetentionCount, defaultClusterRetention)),
	}
	if text := spec.Snapshots.MinInterval; text != "" {
		interval, err := time.ParseDuration(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.snapshots.minInterval is %q: write a duration such as 1h or 30m", text))
		}
		snapshots.Interval = interval
	}
	return s, snapshots, errors.Join(errs...)
}

// Wanted is the annotation that a HostedControlPlane is to have, and live the one that it has; empty: none. A configuration that can't be carried out, or that
// nobody has looked at yet, changes nothing: Pods would wait for volumes that never come.
func Wanted(config *auditlogv1alpha1.AuditLogPersistenceConfig, live string) string {
	if config == nil || !config.DeletionTimestamp.IsZero() || !config.Spec.Enabled {
		return ""
	}
	c := conditions.Get(config.Status.Conditions, auditlogv1alpha1.ConfigValid)
	s, _, err := SettingsOf(&config.Spec)
	if err != nil || c == nil || c.ObservedGeneration != config.Generation || !conditions.IsTrue(config.Status.Conditions, auditlogv1alpha1.ConfigValid) {
		return live
	}
	return s.Encode()
}

// Seen is what Wanted reads of a configuration.
func Seen(obj client.Object) any {
	config, ok := obj.(*auditlogv1alpha1.AuditLogPersistenceConfig)
	if !ok {
		return nil
	}
	c := conditions.Get(config.Status.Conditions, auditlogv1alpha1.ConfigValid)
	if c == nil {
		return []any{config.Generation, config.DeletionTimestamp.IsZero()}
	}
	return []any{config.Generation, config.DeletionTimestamp.IsZero(), c.ObservedGeneration, c.Status}
}
