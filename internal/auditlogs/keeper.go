package auditlogs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
)

// Labels of snapshots, and annotations of Pods.
const (
	claimOfSnapshot     = "audit-logs-pvc"
	podOfSnapshot       = "audit-logs-pod"
	namespaceOfSnapshot = "hosted-control-plane-namespace"

	restartsAnnotation = "hypershift.openshift.io/last-observed-restart-count"
	snapshotAnnotation = "hypershift.openshift.io/last-snapshot-time"
)

// maxObjects bounds how many Pods, claims and snapshots of one control plane are read.
const maxObjects = 500

var volumeSnapshot = schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}

// Served tells whether the management cluster has VolumeSnapshots.
func Served(mapper meta.RESTMapper) bool {
	_, err := mapper.RESTMapping(volumeSnapshot.GroupKind(), volumeSnapshot.Version)
	return err == nil
}

// Keeper keeps the claims of one control plane, and takes snapshots of them. It is the only writer of owners of claims beside their Pods, of these snapshots, and
// of its two annotations of Pods.
type Keeper struct {
	// Client reads HostedControlPlanes and the configuration from the cache; Live everything else without one, and writes.
	Client client.Reader
	Live   client.Client
	Mapper meta.RESTMapper
	Clock  clock.PassiveClock
	// Events may be nil.
	Events events.Recorder
}

// Reconcile does what is to be done for one HostedControlPlane.
func (k *Keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, err := read.Optional(ctx, k.Client, req.NamespacedName, &hyperv1.HostedControlPlane{})
	if err != nil || hcp == nil || !hcp.DeletionTimestamp.IsZero() || hcp.Annotations[auditlogs.SettingsAnnotation] == "" {
		return ctrl.Result{}, err
	}
	w, uids, err := k.world(ctx, hcp.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := Decide(w)
	var errs []error
	for name, owner := range p.Keep {
		errs = append(errs, k.keep(ctx, hcp.Namespace, name, w, owner))
	}
	for _, s := range p.Take {
		errs = append(errs, k.take(ctx, hcp, s, w.Settings.Class))
	}
	for _, name := range p.Drop {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: name}}
		errs = append(errs, client.IgnoreNotFound(k.Live.Delete(ctx, claim, client.Preconditions{UID: ptr.To(uids[name])})))
	}
	for _, name := range p.Prune {
		old := &unstructured.Unstructured{}
		old.SetGroupVersionKind(volumeSnapshot)
		old.SetNamespace(hcp.Namespace)
		old.SetName(name)
		errs = append(errs, client.IgnoreNotFound(k.Live.Delete(ctx, old)))
	}
	return ctrl.Result{RequeueAfter: p.Again}, errors.Join(errs...)
}

// world reads what is there. uids are those of the claims.
func (k *Keeper) world(ctx context.Context, namespace string) (w World, uids map[string]types.UID, _ error) {
	config, err := read.Optional(ctx, k.Client, client.ObjectKey{Name: ConfigurationName}, &auditlogv1alpha1.AuditLogPersistenceConfig{})
	if err != nil {
		return w, nil, fmt.Errorf("reading AuditLogPersistenceConfig %s: %w", ConfigurationName, err)
	}
	w.Now = k.Clock.Now()
	if config != nil && Served(k.Mapper) {
		_, snapshots, err := SettingsOf(&config.Spec)
		if err == nil {
			w.Settings = snapshots
		}
	}
	pods, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	in := client.InNamespace(namespace)
	if err := k.Live.List(ctx, pods, in, client.MatchingLabels{"app": names.KubeAPIServer}, client.Limit(maxObjects)); err != nil {
		return w, nil, fmt.Errorf("listing Pods of kube-apiserver in namespace %s: %w", namespace, err)
	}
	if err := k.Live.List(ctx, claims, in, client.HasLabels{auditlogs.ClaimLabel}, client.Limit(maxObjects)); err != nil {
		return w, nil, fmt.Errorf("listing claims of audit logs in namespace %s: %w", namespace, err)
	}
	uids = map[string]types.UID{}
	for i := range claims.Items {
		c := &claims.Items[i]
		uids[c.Name] = c.UID
		if c.DeletionTimestamp.IsZero() {
			w.Claims = append(w.Claims, Claim{Name: c.Name, Owners: c.OwnerReferences, Created: c.CreationTimestamp.Time, Bound: c.Status.Phase == corev1.ClaimBound})
		}
	}
	for i := range pods.Items {
		w.Pods = append(w.Pods, podOf(&pods.Items[i]))
	}
	if w.Settings == nil {
		return w, uids, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(volumeSnapshot.GroupVersion().WithKind(volumeSnapshot.Kind + "List"))
	if err := k.Live.List(ctx, list, in, client.MatchingLabels{namespaceOfSnapshot: namespace}, client.Limit(maxObjects)); err != nil {
		return w, nil, fmt.Errorf("listing VolumeSnapshots in namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		if s := &list.Items[i]; s.GetDeletionTimestamp().IsZero() {
			w.Snapshots = append(w.Snapshots, Snapshot{Name: s.GetName(), Pod: s.GetLabels()[podOfSnapshot], Created: s.GetCreationTimestamp().Time})
		}
	}
	return w, uids, nil
}

// podOf reads a Pod. Annotations that make no sense count as missing.
func podOf(pod *corev1.Pod) Pod {
	p := Pod{Name: pod.Name}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		p.Owner = owner
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == names.KubeAPIServer {
			p.Restarts = s.RestartCount
		}
	}
	if n, err := strconv.ParseInt(pod.Annotations[restartsAnnotation], 10, 32); err == nil {
		p.Seen = int32(n)
	}
	if t, err := time.Parse(time.RFC3339, pod.Annotations[snapshotAnnotation]); err == nil {
		p.Last = t
	}
	return p
}

// keep gives a claim its Pod's ReplicaSet as an owner, too: Kubernetes collects it when both are gone. The Pod stays its controller, or the kubelet would not mount it.
func (k *Keeper) keep(ctx context.Context, namespace, name string, w World, owner metav1.OwnerReference) error {
	owner.Controller, owner.BlockOwnerDeletion = nil, nil
	for _, c := range w.Claims {
		if c.Name != name {
			continue
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{owner}}})
		if err != nil {
			return err
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		// A strategic merge adds to the list of owners by their UIDs.
		if err := k.Live.Patch(ctx, claim, client.RawPatch(types.StrategicMergePatchType, body), client.FieldOwner(keeperName)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("keeping claim %s/%s: %w", namespace, name, err)
		}
	}
	return nil
}

// take takes a snapshot, and then writes down of which restart: when we die in between, its name says that it was taken.
func (k *Keeper) take(ctx context.Context, hcp *hyperv1.HostedControlPlane, s Shot, class string) error {
	spec := map[string]any{"source": map[string]any{"persistentVolumeClaimName": s.Claim}}
	if class != "" {
		spec["volumeSnapshotClassName"] = class
	}
	shot := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	shot.SetGroupVersionKind(volumeSnapshot)
	shot.SetNamespace(hcp.Namespace)
	shot.SetName(s.Name)
	shot.SetLabels(map[string]string{claimOfSnapshot: s.Claim, podOfSnapshot: s.Pod, namespaceOfSnapshot: hcp.Namespace})
	err := k.Live.Create(ctx, shot, client.FieldOwner(keeperName))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("taking snapshot %s/%s: %w", hcp.Namespace, s.Name, err)
	}
	if err == nil {
		events.Event(k.Events, hcp, false, "AuditLogSnapshotTaken", "Snapshot", fmt.Sprintf("Pod %s restarted: VolumeSnapshot %s has its audit logs", s.Pod, s.Name))
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: s.Pod}}
	notes := patch.Metadata{Annotations: map[string]*string{
		restartsAnnotation: ptr.To(strconv.Itoa(int(s.Restarts))), snapshotAnnotation: ptr.To(k.Clock.Now().UTC().Format(time.RFC3339)),
	}}
	if err := k.Live.Patch(ctx, pod, notes.Patch(), client.FieldOwner(keeperName)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting the snapshot of Pod %s/%s: %w", hcp.Namespace, s.Pod, err)
	}
	return nil
}
