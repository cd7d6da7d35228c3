package cloud

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "../../etc", UID: "1234"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}},
		},
	}
}

func TestVolumeFor(t *testing.T) {
	g := NewWithT(t)
	pv := volumeFor(claim(), "standard", nil, "node-1", "/srv/volumes")
	g.Expect(pv.Spec.Local.Path).To(Equal("/srv/volumes/pvc-1234"), "When a claim has a strange name the folder should not be made of it")
	g.Expect(pv.Spec.ClaimRef.UID).To(BeEquivalentTo("1234"))
	g.Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete), "When the class has no policy it should be the API's default")
	g.Expect(pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values).To(Equal([]string{"node-1"}))
	g.Expect(pv.Spec.Capacity.Storage().String()).To(Equal("8Gi"))

	pv = volumeFor(claim(), "keep", ptr.To(corev1.PersistentVolumeReclaimRetain), "node-1", "/srv/volumes")
	g.Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
}

func TestRemoveData(t *testing.T) {
	for name, tc := range map[string]struct {
		volume  string
		path    func(dir, other string) string
		removed bool
	}{
		"When the folder is the volume's own it should be removed":         {"pvc-1", func(dir, _ string) string { return filepath.Join(dir, "pvc-1") }, true},
		"When somebody made a volume with another path it should stay":     {"pvc-2", func(_, other string) string { return other }, false},
		"When a volume names the folder of another volume it should stay":  {"pvc-2", func(dir, _ string) string { return filepath.Join(dir, "pvc-1") }, false},
		"When a volume's name does not start as ours do it should stay":    {"x", func(dir, _ string) string { return filepath.Join(dir, "x") }, false},
		"When the folder is the one that holds all volumes it should stay": {"pvc-", func(dir, _ string) string { return dir }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir, other := t.TempDir(), t.TempDir()
			path := tc.path(dir, other)
			g.Expect(os.MkdirAll(path, 0o700)).To(Succeed())
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: tc.volume}}
			pv.Spec.Local = &corev1.LocalVolumeSource{Path: path}
			r := &volumes{dir: dir, log: logr.Discard()}
			g.Expect(r.removeData(pv)).To(Succeed())
			_, err := os.Stat(path)
			g.Expect(os.IsNotExist(err)).To(Equal(tc.removed))
		})
	}
}

func TestReconcileClaim(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Provisioner: Provisioner}
	for name, tc := range map[string]struct {
		node, selected string
		want           []string // nodes of the volumes
	}{
		"When the scheduler has chosen a node it should be made there":                     {selected: "node-1", want: []string{"node-1"}},
		"When there is only one node it should be made before the scheduler has a look":    {node: "local", want: []string{"local"}},
		"When the scheduler has chosen although there is one node it should be made there": {node: "local", selected: "node-1", want: []string{"node-1"}},
		"When there are several nodes it should wait for the scheduler":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := claim()
			c.Name, c.Spec.StorageClassName = "data", ptr.To(class.Name)
			if tc.selected != "" {
				c.Annotations = map[string]string{selectedNode: tc.selected}
			}
			client := fake.NewClientset(c, class)
			factory := informers.NewSharedInformerFactory(client, 0)
			claims, pvs, classes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes(), factory.Storage().V1().StorageClasses()
			g.Expect(claims.Informer().GetIndexer().Add(c)).To(Succeed())
			g.Expect(classes.Informer().GetIndexer().Add(class)).To(Succeed())
			r := &volumes{client: client, claims: claims.Lister(), volumes: pvs.Lister(), classes: classes.Lister(), dir: t.TempDir(), node: tc.node, log: logr.Discard()}
			g.Expect(r.reconcileClaim(t.Context(), "ns/data")).To(Succeed())
			list, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			var nodes []string
			for _, pv := range list.Items {
				nodes = append(nodes, pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values...)
			}
			g.Expect(nodes).To(Equal(tc.want))
		})
	}
}
