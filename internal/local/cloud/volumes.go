package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// Provisioner is the provisioner of the StorageClass "standard".
	Provisioner = "local.hypershift.openshift.io/folder"

	selectedNode  = "volume.kubernetes.io/selected-node"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	dataFinalizer = "local.hypershift.openshift.io/volume-data"
	fieldOwner    = "hypershift-local"
	volumePrefix  = "pvc-"
	anybodyMayUse = 0o777 // as any user may run in a pod; the folders above keep the machine's users out
	hostnameLabel = "kubernetes.io/hostname"
)

// volumes provisions claims of our StorageClasses and removes the data of released volumes.
type volumes struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	dir     string
	// node is the only one, which the scheduler would choose; empty: it has to say so.
	node string
	log  logr.Logger
}

// reconcileClaim makes the folder and the volume of a claim that the scheduler has placed, or would place: where the scheduler waits for a volume itself, it
// looks only once a second.
func (r *volumes) reconcileClaim(ctx context.Context, key string) error {
	ns, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil //nolint:nilerr // a key that is not one will never be
	}
	claim, err := r.claims.PersistentVolumeClaims(ns).Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	node := cmp.Or(claim.Annotations[selectedNode], r.node)
	if claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil || node == "" || !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	class, err := r.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return ignoreNotFound(err)
	}
	if class.Provisioner != Provisioner {
		return nil
	}
	volume := volumeFor(claim, class.Name, class.ReclaimPolicy, node, r.dir)
	if _, err := r.volumes.Get(volume.Name); err == nil {
		return nil
	}
	// The folder first: a volume without one could be mounted by nobody.
	if err := os.MkdirAll(volume.Spec.Local.Path, 0o700); err != nil {
		return fmt.Errorf("creating the folder of claim %s: %w", key, err)
	}
	if err := os.Chmod(volume.Spec.Local.Path, anybodyMayUse); err != nil {
		return fmt.Errorf("opening the folder of claim %s: %w", key, err)
	}
	// Created, not applied: the name holds the claim's UID, so whoever was first did the same.
	_, err = r.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{FieldManager: fieldOwner})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating volume %s: %w", volume.Name, err)
	}
	r.log.Info("provisioned a volume", "claim", key, "volume", volume.Name)
	return nil
}

// volumeFor is the volume of a claim. Its name and folder come from the claim's UID only, which the API server chose.
func volumeFor(claim *corev1.PersistentVolumeClaim, class string, reclaim *corev1.PersistentVolumeReclaimPolicy, node, dir string) *corev1.PersistentVolume {
	name := volumePrefix + string(claim.UID)
	policy := corev1.PersistentVolumeReclaimDelete
	if reclaim != nil {
		policy = *reclaim
	}
	mode := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{provisionedBy: Provisioner},
			Finalizers:  []string{dataFinalizer},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              class,
			VolumeMode:                    &mode,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: filepath.Join(dir, name)}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: hostnameLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
}

// reconcileVolume removes the data of a volume that is released or being deleted, then the volume.
func (r *volumes) reconcileVolume(ctx context.Context, name string) error {
	pv, err := r.volumes.Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if pv.Annotations[provisionedBy] != Provisioner || pv.Spec.Local == nil {
		return nil
	}
	deletes := pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	if pv.Status.Phase == corev1.VolumeReleased && deletes && pv.DeletionTimestamp.IsZero() {
		opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pv.UID}}
		return ignoreNotFound(r.client.CoreV1().PersistentVolumes().Delete(ctx, name, opts))
	}
	if pv.DeletionTimestamp.IsZero() || !slices.Contains(pv.Finalizers, dataFinalizer) || pv.Status.Phase == corev1.VolumeBound {
		return nil
	}
	if deletes {
		if err := r.removeData(pv); err != nil {
			return err
		}
	}
	return r.dropFinalizer(ctx, pv)
}

// removeData deletes the folder of a volume, if it is one that we made.
func (r *volumes) removeData(pv *corev1.PersistentVolume) error {
	// The path is compared, not used: whoever may write volumes must not be able to have other folders deleted.
	want := filepath.Join(r.dir, pv.Name)
	if pv.Spec.Local.Path != want || !strings.HasPrefix(pv.Name, volumePrefix) || strings.Contains(pv.Name, "/") {
		return nil
	}
	if err := os.RemoveAll(want); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the data of volume %s: %w", pv.Name, err)
	}
	r.log.Info("removed the data of a volume", "volume", pv.Name)
	return nil
}

func (r *volumes) dropFinalizer(ctx context.Context, pv *corev1.PersistentVolume) error {
	left := slices.DeleteFunc(slices.Clone(pv.Finalizers), func(f string) bool { return f == dataFinalizer })
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": pv.ResourceVersion, "finalizers": left}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = r.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: fieldOwner})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
