package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// nodeAnnotation on a PersistentVolume names the node whose folder it is.
	nodeAnnotation = "local-storage.hypershift.openshift.io/node"
	// selectedNode is the scheduler's choice, on a claim whose class waits for the first consumer.
	selectedNode = "volume.kubernetes.io/selected-node"
	// volumeMode lets any user write: pods choose theirs, and whoever mounts the volume is meant to. The folder above is root's.
	volumeMode = 0o777
)

// volumeName is how the library names volumes: "pvc-" and the claim's UID. Only such folders are ever made or removed.
var volumeName = regexp.MustCompile(`^pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// nodeGetter is what is asked about other nodes.
type nodeGetter interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Node, error)
}

// provisioner makes and removes folders of one node.
type provisioner struct {
	node  string
	root  *os.Root // of all volumes; nothing outside is touched, whatever links are in it
	nodes nodeGetter
}

var (
	_ controller.Provisioner   = &provisioner{}
	_ controller.Qualifier     = &provisioner{}
	_ controller.DeletionGuard = &provisioner{}
)

// ShouldProvision is true for claims whose pod comes to this node.
func (p *provisioner) ShouldProvision(_ context.Context, claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[selectedNode] == p.node
}

// Provision makes the folder. A second call for the same claim finds it and returns the same volume.
func (p *provisioner) Provision(ctx context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if err := check(o); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	node, err := p.nodes.Get(ctx, p.node, metav1.GetOptions{})
	if err != nil {
		return nil, controller.ProvisioningNoChange, fmt.Errorf("reading node %s: %w", p.node, err)
	}
	hostname := node.Labels[corev1.LabelHostname]
	if hostname == "" {
		return nil, controller.ProvisioningFinished, fmt.Errorf("node %s has no label %s, by which pods would be kept beside the volume", p.node, corev1.LabelHostname)
	}
	if err := p.root.Mkdir(o.PVName, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, controller.ProvisioningFinished, fmt.Errorf("making the folder of %s: %w", o.PVName, err)
	}
	if err := p.root.Chmod(o.PVName, volumeMode); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("opening the folder of %s to pods: %w", o.PVName, err)
	}
	return p.volume(o, hostname), controller.ProvisioningFinished, nil
}

// check says what can't be had from a folder.
func check(o controller.ProvisionOptions) error {
	if !volumeName.MatchString(o.PVName) {
		return fmt.Errorf("volume name %q is not of the form pvc-UID", o.PVName)
	}
	if o.PVC.Spec.Selector != nil {
		return errors.New("spec.selector: a claim with a selector is not served by this storage class; leave it out")
	}
	if o.PVC.Spec.DataSource != nil || o.PVC.Spec.DataSourceRef != nil {
		return errors.New("spec.dataSource: snapshots and clones are not served by this storage class; leave it out")
	}
	for _, mode := range o.PVC.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return fmt.Errorf("spec.accessModes: %s needs storage that nodes share; this storage class has ReadWriteOnce and ReadWriteOncePod", mode)
		}
	}
	return nil
}

func (p *provisioner) volume(o controller.ProvisionOptions, hostname string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName, Annotations: map[string]string{nodeAnnotation: p.node}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: o.PVC.Spec.AccessModes,
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			VolumeMode:  o.PVC.Spec.VolumeMode,
			// Of type local, and not hostPath, so that a pod's fsGroup is honoured.
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path.Join(p.root.Name(), o.PVName)}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{hostname}}},
			}}}},
		},
	}
	if o.StorageClass.ReclaimPolicy != nil {
		pv.Spec.PersistentVolumeReclaimPolicy = *o.StorageClass.ReclaimPolicy
	}
	return pv
}

// ShouldDelete is true for volumes of this node, and for those of nodes that are gone with their disks: nobody else is left to
// say so.
func (p *provisioner) ShouldDelete(ctx context.Context, pv *corev1.PersistentVolume) bool {
	switch name := pv.Annotations[nodeAnnotation]; name {
	case p.node:
		return true
	case "":
		return false
	default:
		if pv.Status.Phase != corev1.VolumeReleased {
			return false // saves the question
		}
		_, err := p.nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "cannot tell whether the node of a volume exists", "PV", pv.Name, "node", name)
		}
		return apierrors.IsNotFound(err)
	}
}

// Delete removes the folder. Which one follows from the volume's name; the path in its spec is not believed.
func (p *provisioner) Delete(_ context.Context, pv *corev1.PersistentVolume) error {
	if pv.Annotations[nodeAnnotation] != p.node {
		return nil // its disk is gone
	}
	if !volumeName.MatchString(pv.Name) {
		return &controller.IgnoredError{Reason: fmt.Sprintf("%q is no volume of this program", pv.Name)}
	}
	if err := p.root.RemoveAll(pv.Name); err != nil {
		return fmt.Errorf("removing the folder of %s: %w", pv.Name, err)
	}
	return nil
}
