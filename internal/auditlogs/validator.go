package auditlogs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
)

const (
	// defaultClass marks the StorageClass that claims get which name none.
	defaultClass = "storageclass.kubernetes.io/is-default-class"
	// lookAgain is when classes and kinds of the management cluster are looked for again that were missing.
	lookAgain = time.Minute
	// maxNamed bounds how many control planes a message names.
	maxNamed = 5
	// maxClasses bounds how many StorageClasses are read.
	maxClasses = 500
)

// Validator says whether the configuration can be carried out, and how far it is. It is the only writer of the status of the AuditLogPersistenceConfig.
type Validator struct {
	// Client reads from the cache, Live without one; Client writes.
	Client client.Client
	Live   client.Reader
	Mapper meta.RESTMapper
	Clock  clock.PassiveClock
	// Events may be nil.
	Events events.Recorder
}

var rules = []events.Rule{
	{Condition: auditlogv1alpha1.ConfigValid, Status: metav1.ConditionFalse, Warning: true, Action: "Validate"},
	{Condition: auditlogv1alpha1.ConfigApplied, Status: metav1.ConditionTrue, Action: "Apply"},
	{Condition: auditlogv1alpha1.SnapshotsPossible, Status: metav1.ConditionFalse, Warning: true, Action: "Validate"},
}

// Reconcile looks at the configuration.
func (v *Validator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &auditlogv1alpha1.AuditLogPersistenceConfig{}
	if err := v.Client.Get(ctx, req.NamespacedName, config); apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading AuditLogPersistenceConfig %s: %w", req.Name, err)
	}
	if !config.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := config.DeepCopy()
	valid, snapshots, err := v.valid(ctx, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	list := []metav1.Condition{valid}
	if snapshots == nil {
		conditions.Remove(&config.Status.Conditions, auditlogv1alpha1.SnapshotsPossible)
	} else {
		list = append(list, v.possible())
	}
	applied, err := v.applied(ctx, config, valid.Status)
	if err != nil {
		return ctrl.Result{}, err
	}
	list, again := append(list, applied), time.Duration(0)
	for i := range list {
		list[i].ObservedGeneration = config.Generation
		if list[i].Status == metav1.ConditionFalse && list[i].Type != auditlogv1alpha1.ConfigApplied {
			again = lookAgain
		}
	}
	conditions.Set(&config.Status.Conditions, v.Clock.Now(), list...)
	if err := patch.Status(ctx, v.Client, before, config); err != nil {
		return ctrl.Result{}, err
	}
	events.Transitions(v.Events, config, rules, before.Status.Conditions, config.Status.Conditions)
	return ctrl.Result{RequeueAfter: again}, nil
}

// valid says whether volumes can be made.
func (v *Validator) valid(ctx context.Context, config *auditlogv1alpha1.AuditLogPersistenceConfig) (metav1.Condition, *Snapshots, error) {
	const t = auditlogv1alpha1.ConfigValid
	s, snapshots, err := SettingsOf(&config.Spec)
	if err != nil {
		return conditions.False(t, auditlogv1alpha1.InvalidReason, strings.ReplaceAll(err.Error(), "\n", "; ")+"; audit logs stay where they are until then"), snapshots, nil
	}
	problem, err := v.storage(ctx, s.StorageClass)
	if err != nil {
		return metav1.Condition{}, nil, err
	}
	if problem != "" {
		return conditions.False(t, auditlogv1alpha1.StorageMissingReason, problem+"; audit logs stay where they are until then"), snapshots, nil
	}
	return conditions.True(t, hyperv1.AsExpectedReason, "Volumes can be created"), snapshots, nil
}

// storage says what is wrong with the class; empty: nothing.
func (v *Validator) storage(ctx context.Context, class string) (string, error) {
	if class != "" {
		err := v.Live.Get(ctx, client.ObjectKey{Name: class}, &storagev1.StorageClass{})
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("spec.storage.storageClassName: StorageClass %s does not exist: create it, or name another", class), nil
		}
		return "", client.IgnoreNotFound(err)
	}
	list := &storagev1.StorageClassList{}
	if err := v.Live.List(ctx, list, client.Limit(maxClasses)); err != nil {
		return "", fmt.Errorf("listing StorageClasses: %w", err)
	}
	if !slices.ContainsFunc(list.Items, func(c storagev1.StorageClass) bool { return c.Annotations[defaultClass] == "true" }) {
		return "spec.storage.storageClassName is empty and no StorageClass is the default: name one", nil
	}
	return "", nil
}

// possible says whether snapshots can be taken.
func (v *Validator) possible() metav1.Condition {
	if !Served(v.Mapper) {
		return conditions.False(auditlogv1alpha1.SnapshotsPossible, auditlogv1alpha1.NoSnapshotsReason,
			"spec.snapshots.enabled is true, and the management cluster has no VolumeSnapshots: install a snapshot controller and its definitions, or set it to false. Logs are kept on volumes either way")
	}
	return conditions.True(auditlogv1alpha1.SnapshotsPossible, hyperv1.AsExpectedReason, "Snapshots are taken after restarts")
}

// applied says which control planes have what is wanted.
func (v *Validator) applied(ctx context.Context, config *auditlogv1alpha1.AuditLogPersistenceConfig, valid metav1.ConditionStatus) (metav1.Condition, error) {
	const t = auditlogv1alpha1.ConfigApplied
	if !config.Spec.Enabled {
		return conditions.False(t, auditlogv1alpha1.DisabledReason, "spec.enabled is false: audit logs are lost with their Pods"), nil
	}
	if valid != metav1.ConditionTrue {
		return conditions.False(t, auditlogv1alpha1.InvalidReason, "The configuration can't be applied, see condition Valid"), nil
	}
	s, _, err := SettingsOf(&config.Spec)
	if err != nil {
		return metav1.Condition{}, err
	}
	list := &hyperv1.HostedControlPlaneList{}
	if err := v.Client.List(ctx, list); err != nil {
		return metav1.Condition{}, fmt.Errorf("listing HostedControlPlanes: %w", err)
	}
	var waiting []string
	for i := range list.Items {
		if hcp := &list.Items[i]; hcp.DeletionTimestamp.IsZero() && hcp.Annotations[auditlogs.SettingsAnnotation] != s.Encode() {
			waiting = append(waiting, hcp.Namespace)
		}
	}
	if len(waiting) == 0 {
		return conditions.True(t, hyperv1.AsExpectedReason, fmt.Sprintf("%d control planes keep their audit logs on volumes", len(list.Items))), nil
	}
	slices.Sort(waiting)
	named := strings.Join(waiting[:min(len(waiting), maxNamed)], ", ")
	if more := len(waiting) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return conditions.False(t, auditlogv1alpha1.ApplyingReason, fmt.Sprintf("%d of %d control planes do not keep their audit logs on volumes yet: %s", len(waiting), len(list.Items), named)), nil
}
