package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const name = "pvc-01234567-89ab-cdef-0123-456789abcdef"

type nodes map[string]*corev1.Node

func (n nodes) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	if node := n[name]; node != nil {
		return node, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name + ".example"}}}
}

// world is a provisioner of node "mine" and the folder above its own.
func world(t *testing.T) (*provisioner, string) {
	t.Helper()
	above := t.TempDir()
	folder := filepath.Join(above, "volumes")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &provisioner{node: "mine", root: root, nodes: nodes{"mine": node("mine"), "other": node("other")}}, above
}

func request(mutate ...func(*corev1.PersistentVolumeClaim)) controller.ProvisionOptions {
	reclaim := corev1.PersistentVolumeReclaimDelete
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	for _, m := range mutate {
		m(claim)
	}
	return controller.ProvisionOptions{PVName: name, PVC: claim, StorageClass: &storagev1.StorageClass{ReclaimPolicy: &reclaim}, SelectedNodeName: "mine"}
}

func TestProvision(t *testing.T) {
	t.Run("When a claim is served it should have a folder that any user may write, once", func(t *testing.T) {
		p, _ := world(t)
		for range 2 { // the second is a try after a crash
			pv, state, err := p.Provision(t.Context(), request())
			if err != nil || state != controller.ProvisioningFinished {
				t.Fatal(state, err)
			}
			if want := filepath.Join(p.root.Name(), name); pv.Name != name || pv.Spec.Local.Path != want || pv.Annotations[nodeAnnotation] != "mine" {
				t.Errorf("unexpected volume %+v", pv)
			}
			if got := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]; got != "mine.example" {
				t.Errorf("the volume is kept on %q", got)
			}
			if size := pv.Spec.Capacity[corev1.ResourceStorage]; size.String() != "1Gi" || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
				t.Errorf("unexpected volume %+v", pv.Spec)
			}
			if info, err := p.root.Stat(name); err != nil || info.Mode().Perm() != volumeMode {
				t.Errorf("the folder: %v, %v", info, err)
			}
		}
	})
	for what, tc := range map[string]struct {
		options controller.ProvisionOptions
		want    string
	}{
		"When nodes would share the volume it should refuse": {
			request(func(c *corev1.PersistentVolumeClaim) {
				c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			}), "spec.accessModes: ReadWriteMany",
		},
		"When a selector is given it should refuse": {
			request(func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }), "spec.selector",
		},
		"When it should be a copy it should refuse": {
			request(func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSource = &corev1.TypedLocalObjectReference{} }), "spec.dataSource",
		},
		"When the name is no volume's it should refuse": {
			controller.ProvisionOptions{PVName: "../" + name, PVC: request().PVC}, "not of the form",
		},
	} {
		t.Run(what, func(t *testing.T) {
			p, above := world(t)
			if _, _, err := p.Provision(t.Context(), tc.options); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			if entries, _ := os.ReadDir(filepath.Join(above, "volumes")); len(entries) != 0 {
				t.Errorf("made %v", entries)
			}
		})
	}
	t.Run("When the scheduler chose another node it should leave the claim alone", func(t *testing.T) {
		p, _ := world(t)
		for node, want := range map[string]bool{"mine": true, "other": false, "": false} {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{selectedNode: node}}}
			if got := p.ShouldProvision(t.Context(), claim); got != want {
				t.Errorf("for node %q: %t", node, got)
			}
		}
	})
}

func TestDelete(t *testing.T) {
	volume := func(name, node string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{nodeAnnotation: node}},
			Spec:   corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/"}}},
			Status: corev1.PersistentVolumeStatus{Phase: phase}}
	}
	t.Run("When a volume is released it should be deleted by its node, or by any when that is gone", func(t *testing.T) {
		p, _ := world(t)
		for node, want := range map[string]bool{"mine": true, "other": false, "gone": true, "": false} {
			if got := p.ShouldDelete(t.Context(), volume(name, node, corev1.VolumeReleased)); got != want {
				t.Errorf("of node %q: %t", node, got)
			}
		}
		if p.ShouldDelete(t.Context(), volume(name, "gone", corev1.VolumeBound)) {
			t.Error("would delete a volume in use")
		}
	})
	t.Run("When a volume is deleted it should lose its folder and nothing else, whatever its path and links say", func(t *testing.T) {
		p, above := world(t)
		if _, _, err := p.Provision(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(above, "kept")
		if err := os.WriteFile(kept, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(above, filepath.Join(above, "volumes", name, "link")); err != nil {
			t.Fatal(err)
		}
		if err := p.Delete(t.Context(), volume(name, "mine", corev1.VolumeReleased)); err != nil {
			t.Fatal(err)
		}
		if _, err := p.root.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder is left: %v", err)
		}
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
		if err := p.Delete(t.Context(), volume(name, "mine", corev1.VolumeReleased)); err != nil {
			t.Errorf("a second time: %v", err)
		}
	})
	t.Run("When the volume is of a node that is gone it should touch nothing", func(t *testing.T) {
		p, _ := world(t)
		if _, _, err := p.Provision(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		if err := p.Delete(t.Context(), volume(name, "gone", corev1.VolumeReleased)); err != nil {
			t.Fatal(err)
		}
		if _, err := p.root.Stat(name); err != nil {
			t.Error(err)
		}
	})
	t.Run("When the name is no volume's it should ignore it", func(t *testing.T) {
		p, _ := world(t)
		err := p.Delete(t.Context(), volume(".", "mine", corev1.VolumeReleased))
		if !errors.As(err, new(*controller.IgnoredError)) {
			t.Errorf("the error is %v", err)
		}
	})
}
