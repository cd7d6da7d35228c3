package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// TestRestoredNamespace has a ConfigMap come back as Velero brings it: without its owner, and written by another field manager.
func TestRestoredNamespace(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
		hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = []string{"https://backups.example.com/demo.db"}
	})
	key := client.ObjectKey{Namespace: w.hcp.Namespace, Name: "etcd-founded"}
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string]string{"founded": "true", "cluster": "another"}}
	g.Expect(w.c.Create(t.Context(), marker, client.FieldOwner("velero-server"))).To(Succeed())
	init := func() (names []string) {
		s := &appsv1.StatefulSet{}
		w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: "etcd"}, s)
		for _, c := range s.Spec.Template.Spec.InitContainers {
			names = append(names, c.Name)
		}
		return names
	}
	of := string(w.hcp.UID)
	g.Expect(of).NotTo(BeEmpty())
	w.mustPass()
	g.Expect(init()).To(Equal([]string{"etcd-init", "reset-member"}), "the snapshot should be loaded")
	w.get(key, marker)
	g.Expect(marker.Data).To(Equal(map[string]string{"founded": "false", "cluster": of}), "members should not read what is about others")
	g.Expect(metav1.IsControlledBy(marker, w.hcp)).To(BeTrue())

	w.rolledOut("etcd")
	w.mustPass()
	w.get(key, marker)
	g.Expect(marker.Data).To(Equal(map[string]string{"founded": "true", "cluster": of}))
	g.Expect(init()).To(Equal([]string{"reset-member"}))
}
